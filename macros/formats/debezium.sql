{#-
  Debezium change events as JSON (https://debezium.io/documentation/reference/stable/): the envelope alone, with its
  schema ({schema, payload}), or as a Kafka record ({topic, key, value, headers}, or with parts that are text) of either kind. Or
  the row alone with `__op` or `__deleted` among its columns, as the transform ExtractNewRecordState writes it; or a CloudEvent.
  No row change, so in no table: tombstones (null value), heartbeats, transaction metadata, schema changes, logical messages. An
  unchanged TOAST value comes as a placeholder: its column is absent. A key change comes as a delete and a create; the create's
  header __debezium.oldkey names the key before.
-#}
{% macro debezium_changes(lines, settings) -%}
{%- set is_there = 'not coalesce(value in (' ~ delta_cdc._debezium_placeholders(settings.unavailable_value) ~ '), false)' -%}
{%- set before -%}
{%- if not delta_cdc._may_have_keys(settings) -%}row_before{%- else -%}
case op_code when 'c' then coalesce({{ delta_cdc._texts('old_key') }}, row_before)
    when 'd' then coalesce({{ delta_cdc._with_key('row_before', settings) }}, {{ delta_cdc._texts('record_key') }})
    else row_before end
{%- endif -%}
{%- endset -%}
select
  batch_id, change_set, row_number, message,
  event is not null as parsed,
  op_code,
  {{ delta_cdc._columns_where(delta_cdc._with_key('row_after', settings), is_there) }} as after,
  {{ delta_cdc._columns_where(before, is_there) }} as before,
  case when coalesce(pg_position, offset) is not null or log <> ''
    then struct(log, coalesce(pg_position, offset) as offset, log_row as row) end as _position,
  {{ delta_cdc._arrival() }} as _arrival,
  -- Informix gives a transaction's number to later ones, too; YugabyteDB's may be an empty text
  concat(coalesce(nullif(source.txId, ''), nullif(source.gtid, ''),
      regexp_replace(event.transaction.id, '^([0-9]+):[0-9]+$', '$1')),  -- PostgreSQL, Informix: id:lsn
    coalesce(concat(':', source.commit_lsn), '')) as _txid,
  coalesce(event.transaction.total_order, if(is_second_half, serial_no, null)) as _total_order,
  coalesce(timestamp_micros(nullif(source.ts_us, 0)), timestamp_micros(nullif(source.ts_ns, 0) div 1000),
    {{ delta_cdc._of_millis('nullif(source.ts_ms, 0)') }}, {{ delta_cdc._of_millis('event.ts_ms') }}) as _timestamp,
  {{ delta_cdc._debezium_types(settings) }} as _semantic_types,
  is_document as _is_document
from (
  select *, event.source as source,
    -- a row without an operation, as Materialize writes it, tells it by its images
    coalesce(event.op, case
        when row_after is not null then if(row_before is null, 'c', 'u')
        when row_before is not null then 'd' end) as op_code,
    -- PostgreSQL gives [last commit, this change], also for the rows of an incremental snapshot, which have no lsn
    try_cast(try_variant_get(try_parse_json(event.source.sequence), '$[1]', 'string') as decimal(38, 0)) as pg_position,
    try_cast({{ delta_cdc._debezium_offset(settings) }} as decimal(38, 0)) as offset,
    coalesce({{ "if(event.source.connector = 'cassandra', null, {0})".format(delta_cdc._padded('event.source.file'))
        if delta_cdc.may_hold(settings, 'others') else delta_cdc._padded('event.source.file') }},
      concat_ws('/', {{ delta_cdc._padded('event.source.commit_lsn') }},
        {{ delta_cdc._padded('event.source.change_lsn') }})) as log,
    try_cast(event.source.row as bigint) as log_row
  from (
    select *, {{ delta_cdc._texts('before') }} as row_before,
      -- SQL Server's events of one place in its log have numbers. There a key change is a delete with 1 and a create with 2: both
      -- have one position (K6), and what is deleted and created under one key is told apart by the ordinal
      cast(try_cast(event.source.event_serial_no as int) as bigint) as serial_no,
      event.op in ('c', 'd') and try_cast(event.source.event_serial_no as int) % 2 = 0 as is_second_half,
      {{ delta_cdc._debezium_row_after(settings) }} as row_after
    from ({{ delta_cdc._debezium_events(lines, settings) }})
  )
)
{%- endmacro %}


{#- Messages that are more than an envelope of a relational database's row, by what stands in their text. -#}
{% macro debezium_kinds() %}
  {{ return({
      'records': "contains(message, '\"topic') or contains(message, '\"key')",
      'texts': "contains(message, r'\"{\\\"')",
      'payloads': "contains(message, 'payload')",
      'schemas': "contains(message, '\"fields')",
      'rows': "contains(message, '\"__op') or contains(message, '\"__deleted')",
      'cloud_events': "contains(message, '\"iodebeziumop')",
      'documents': "contains(message, 'collection')",
      'cells': "contains(message, '\"set\"') or contains(message, r'\"set\\\"')",
      'others': "contains(message, 'cassandra') or contains(message, 'TiCDC') or contains(message, 'spanner')"
          ~ " or contains(message, 'scylla') or contains(message, 'yugabytedb') or contains(message, 'cluster')",
    }) }}
{% endmacro %}


{#- The place in a log that the source tells, as digits. MongoDB's is a second and a number in it; from 3.4 on its time is the
    wall's, which may be a moment behind that second. A snapshot's row has -1, and the time of its telling. Of TiCDC's all else
    than the commit is the same in every message. Cassandra's log is one node's, and each replica tells a write: what counts there
    and here is the write's time. Aurora DSQL's messages come in any order; that of its commits is their time. -#}
{% macro _debezium_offset(settings) -%}
coalesce(
      {%- if delta_cdc.may_hold(settings, 'documents') %}
      if(is_document and event.source.ord >= 0,
        cast(event.source.ts_ms * 4294967296BD + event.source.ord as string), null),
      {%- endif %}
      {%- if delta_cdc.may_hold(settings, 'others') %}
      if(event.source.connector = 'cassandra',
        cast(coalesce(event.source.ts_us, try_multiply(event.source.ts_ms, 1000L)) as string), null),
      if(event.source.connector = 'TiCDC', event.source.commit_ts, null),
      if(event.source.connector is null and event.source.cluster is not null, cast(event.source.ts_ns as string), null),
      {%- endif %}
      event.source.lsn, event.source.pos, event.source.scn, cast(serial_no - if(is_second_half, 1, 0) as string))
{%- endmacro %}

{#- The row after a change, a map<string, string>. Spanner tells the key and what was modified, if not the whole row: what is null
    before and after is not told. So does ScyllaDB beside a row before (`only-updated`), which with `full_images` is whole; a cell
    with a null in it tells one. -#}
{% macro _debezium_row_after(settings) -%}
{%- set before, after = delta_cdc._texts('before'), delta_cdc._texts('after') -%}
{%- if not delta_cdc.may_hold(settings, 'others') -%}{{ return(after) }}{%- endif -%}
if(event.op = 'u' and ((event.source.connector = 'spanner'
          and not coalesce(startswith(event.source.value_capture_type, 'NEW_ROW'), false))
        {%- if not settings.get('full_images') %}
        or (event.source.connector = 'scylla' and {{ before }} is not null)
        {%- endif %}),
      transform(array({{ delta_cdc._fields('event.after') }}), told -> map_filter({{ after }},
        (name, value) -> value is not null or {{ before }}[name] is not null or not is_variant_null(told[name])))[0],
      {{ after }})
{%- endmacro %}

{#- What a value that is not known is written as, by its type (UnchangedToastedPlaceholder.java of Debezium): as
    text and bytes; as a map; in lists of text, bytes and UUIDs; in lists of numbers, decimals and booleans an
    element a letter, made of its code. -#}
{% macro _debezium_placeholders(text) %}
  {%- if modules.re.fullmatch('hex:([0-9A-Fa-f]{2})+', text) -%}
    {#- MySQL's and PostgreSQL's connectors take these digits for the text's bytes, others for the text -#}
    {%- set told = text.encode().fromhex(text[4:]).decode('utf-8', 'replace') -%}
    {{ return(delta_cdc._literals([text]) ~ ', ' ~ delta_cdc._debezium_placeholders(told)) }}
  {%- endif -%}
  {%- set md5, base64 = local_md5(text), 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/' -%}
  {%- set uuid = md5[:8] ~ '-' ~ md5[8:12] ~ '-3' ~ md5[13:16]
        ~ '-' ~ '89ab'[(md5[16] | int(base=16)) % 4] ~ md5[17:20] ~ '-' ~ md5[20:] -%}
  {%- set known = [text, '{"' ~ text ~ '":"' ~ text ~ '"}', '["' ~ text ~ '"]', '["' ~ uuid ~ '"]'] -%}
  {#- of a short text, what a list of so many is by itself too -#}
  {%- for element in ['{0}'] + (['{0}.0', '"{1}"', '{{"scale":0,"value":"{1}"}}', 'true'] if text | length > 16 else []) -%}
    {%- set elements = [] -%}
    {%- for code in text.encode() -%}
      {%- do elements.append(element.format(code, base64[code // 4] ~ base64[code % 4 * 16] ~ '==')) -%}
    {%- endfor -%}
    {%- do known.append('[' ~ elements | join(',') ~ ']') -%}
  {%- endfor -%}
  {%- set literal = delta_cdc.literal(text) -%}
  {{ return(delta_cdc._literals(known)
      ~ ", base64(" ~ literal ~ "), concat('[\"', base64(" ~ literal ~ "), '\"]'), lower(hex(" ~ literal ~ "))") }}
{% endmacro %}

{#- An image, a map<string, string>, with the key columns that it does not have and the record's key has: YDB writes them there
    alone, and so ByLogicalTableRouter what tells shards apart. -#}
{% macro _with_key(image, settings) %}
  {%- set has = [] -%}
  {%- for key in settings['keys'] -%}
    {%- do has.append("map_contains_key(" ~ image ~ ", " ~ delta_cdc.literal(key) ~ ")") -%}
  {%- endfor -%}
  {%- if not has or not delta_cdc._may_have_keys(settings) -%}{{ return(image) }}{%- endif -%}
  {%- set of_record = delta_cdc._columns_where(delta_cdc._texts('record_key'), 'name in ('
        ~ delta_cdc._literals(settings['keys']) ~ ') and not map_contains_key(' ~ image ~ ', name)') -%}
  {{ return('if(record_key is null or (' ~ has | join(' and ') ~ '), ' ~ image ~ ', map_concat(' ~ of_record ~ ', ' ~ image
      ~ '))') }}
{% endmacro %}


{#- Whether messages may have a key beside the envelope. -#}
{% macro _may_have_keys(settings) %}
  {{ return(delta_cdc.may_hold(settings, 'records') or delta_cdc.may_hold(settings, 'others')) }}
{% endmacro %}


{#- The envelopes with `event`, what they say, and its rows and keys, each an object of the columns' values, whatever it came as:
    a document of MongoDB's is text (and what the key names `id` is its `_id`); YugabyteDB and Cassandra write cells. -#}
{% macro _debezium_events(lines, settings) -%}
{%- set type -%}
struct<
        op string, before variant, after variant, `key` variant, ts_ms bigint,
        `transaction` struct<id string, total_order bigint>,
        source struct<lsn string, sequence string, txId string, gtid string, ts_ms bigint, ts_us bigint, ts_ns bigint,
          file string, pos string, row string, scn string, commit_lsn string, change_lsn string, event_serial_no string,
          connector string, cluster string, commit_ts string, value_capture_type string, collection string, ord bigint>>
{%- endset -%}
{%- set told -%}
select batch_id, change_set, row_number, message, old_key, record_key, semantic_types, try_cast(envelope as {{ type }}) as event
    from ({{ delta_cdc._debezium_envelopes(lines, settings, delta_cdc._known_columns(settings)) }})
{%- endset -%}
{%- set record_key = 'record_key' -%}
{%- if settings['keys'] == ['_id'] -%}
  {#- a document's, where it is flattened: its delete has no `_id` unless `rewrite-with-id` is set -#}
  {%- set record_key -%}
if(map_keys({{ delta_cdc._fields('record_key') }}) = array('id'),
      to_variant_object(named_struct('_id', try_variant_get(record_key, '$.id', 'variant'))), record_key)
  {%- endset -%}
{%- endif -%}
{%- set documents, cells, others = delta_cdc.may_hold(settings, 'documents'), delta_cdc.may_hold(settings, 'cells'),
      delta_cdc.may_hold(settings, 'others') -%}
{%- if documents or cells or others -%}
select batch_id, change_set, row_number, message, event, is_document,
  if(rows is null, event.after, rows[0]) as after, if(rows is null, event.before, rows[1]) as before,
  case when rows is null then {{ record_key }}
    when is_document then to_variant_object(named_struct('_id', rows[2]))
    else rows[2] end as record_key,
  if(rows is null, old_key, rows[3]) as old_key,
  {%- if documents %}
  if(is_document,
    {{ delta_cdc._types_of_document('coalesce(try_cast(event.after as string), try_cast(event.before as string))') }},
    semantic_types) as
  {%- endif %} semantic_types
from (
  select *, case
      {%- if documents %}
      when is_document then
        transform(array(try_cast(event.after as string), try_cast(event.before as string),
            try_variant_get(record_key, '$.id', 'string'), null),
          text -> {{ delta_cdc._document('text') }})
      {%- endif %}
      {%- if cells %}
      when {{ delta_cdc.debezium_kinds().cells }} then
        transform(array(event.after, event.before, record_key, old_key), row -> {{ delta_cdc._without_cells('row') }})
      {%- endif %}
      {%- if others %}
      when event.source.connector in ('scylla', 'yugabytedb') then
        transform(array(event.after, event.before, record_key, old_key), row -> {{ delta_cdc._without_values('row') }})
      {%- endif %}
      end as rows
  from (
    -- ScyllaDB's key may be in the payload, there alone too (cdc.include.primary-key.placement: payload-key)
    select * except (record_key),
      if(event.source.connector = 'scylla', coalesce(event.`key`, record_key), record_key) as record_key,
      event.source.collection is not null and not coalesce(schema_of_variant(event.after) like 'OBJECT%', false) as is_document
    from ({{ told }})
  )
)
{%- else -%}
select * except (record_key), event.after as after, event.before as before, {{ record_key }} as record_key, false as is_document
from ({{ told }})
{%- endif -%}
{%- endmacro %}

{#- What the schema says of the columns. -#}
{% macro debezium_maps() %}{{ return(['_semantic_types']) }}{% endmacro %}

{#- A document of MongoDB's is whole: what it does not have is not there. -#}
{% macro debezium_tells_all() %}{{ return('_is_document') }}{% endmacro %}


{#- A row whose values are all cells, {value, set}, as one of values; a cell that is null or not set is of a column that the
    change does not have. Another row as it is. -#}
{% macro _without_cells(row) -%}
transform(array(map_filter({{ delta_cdc._fields(row) }}, (name, cell) -> not is_variant_null(cell))), cells ->
        if(size(cells) > 0 and forall(map_values(cells), cell ->
              coalesce(map_contains_key({{ delta_cdc._fields('cell') }}, 'value')
                and size(array_except(map_keys({{ delta_cdc._fields('cell') }}),
                    array('value', 'set', 'deletion_ts'))) = 0, false)),
          to_variant_object(transform_values(map_filter(cells, (name, cell) ->
                not try_variant_get(cell, '$.set', 'boolean') <=> false),
            (name, cell) -> try_variant_get(cell, '$.value', 'variant'))),
          {{ row }}))[0]
{%- endmacro %}


{#- A row of ScyllaDB's, whose cells are {value} beside a key of plain values, or of YugabyteDB's, where the key's are cells too, as
    one of values; a cell that is null is of a column that the change does not have. One without cells (`cdc.output.format`
    advanced) as it is: a null there is one. -#}
{% macro _without_values(row) -%}
{%- set is_cell = 'map_keys(' ~ delta_cdc._fields('cell') ~ ") = array('value')" -%}
transform(array({{ delta_cdc._fields(row) }}), cells ->
        if(cells is null
            or not (message rlike r'\.Cell\\?"' or coalesce(exists(map_values(cells), cell -> {{ is_cell }}), false)),
          {{ row }},
          to_variant_object(transform_values(map_filter(cells, (name, cell) -> not is_variant_null(cell)), (name, cell) ->
            if({{ is_cell }}, try_variant_get(cell, '$.value', 'variant'), cell)))))[0]
{%- endmacro %}


{#- A document of MongoDB's, text in its extended JSON, as an object. What is one value there is one here, nested or not: numbers,
    texts, bytes in base64, moments in milliseconds or as text (`$timestamp`: seconds). -#}
{% macro _document(text) -%}
try_parse_json(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace({{ delta_cdc._json_of_document(text) }},
          r'\{\s*"\$number(?:Long|Int|Double)"\s*:\s*"(-?\d+(?:\.\d+)?)"\s*\}', '$1'),
          r'\{\s*"\$(?:oid|date|symbol|code|uuid|numberDouble|numberDecimal)"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*\}', '$1'),
          r'\{\s*"\$timestamp"\s*:\s*\{\s*"t"\s*:\s*(\d+)[^}]*\}\s*\}', '$1'),
          r'\{\s*"\$binary"\s*:\s*(?:("[^"]*")[^}]*|\{\s*"base64"\s*:\s*("[^"]*")[^}]*\}\s*)\}', '$1$2'),
          r'\{\s*"\$undefined"\s*:\s*true\s*\}', 'null'))
{%- endmacro %}

{#- The text of a document as JSON, which has no NaN and no Infinity: MongoDB's driver writes them bare, here they are texts.
    Outside of texts nothing else has these letters. -#}
{% macro _json_of_document(text) -%}
if({{ text }} rlike 'NaN|Infinity', regexp_replace({{ text }},
          r'\G((?:[^"NI-]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"|-(?!I))*+)(NaN|-?Infinity)', '$1"$2"'), {{ text }})
{%- endmacro %}

{#- What a schema would say of such a document (`_debezium_types`): which of its columns are moments in milliseconds, and which
    are decimals, that are text here. -#}
{% macro _types_of_document(text) -%}
{%- set is_date, is_decimal = "try_variant_get(value, '$[\"$date\"]', 'variant') is not null",
      "try_variant_get(value, '$[\"$numberDecimal\"]', 'variant') is not null" -%}
transform_values(map_filter({{ delta_cdc._fields('try_parse_json(' ~ delta_cdc._json_of_document(text) ~ ')') }},
        (name, value) -> {{ is_date }} or {{ is_decimal }}),
      (name, value) -> struct(if({{ is_date }}, 'org.apache.kafka.connect.data.Timestamp', null) as type,
        cast(null as int) as scale))
{%- endmacro %}


{#- Of each column the schema's {type, scale}, both null where the schema names no type, and for each number that is a decimal by
    the schema or by the column: what is written as `precise` is text. -#}
{% macro _debezium_types(settings) -%}
{%- set decimals = [] -%}
{%- for column, type in settings.column_types.items() if settings.decimal_handling == 'precise'
      and (((none if delta_cdc._stays_as_it_comes(column, settings) else delta_cdc._given_type(column, settings)) or type)
        | lower | trim).startswith('decimal') -%}
  {%- do decimals.extend([column | lower, (settings.get('renamed_columns') or {}).get(column, column) | lower]) -%}
{%- endfor -%}
{%- set is_decimal = [] -%}
{%- if decimals -%}{%- do is_decimal.append('lower(name) in (' ~ delta_cdc._literals(decimals | unique | list) ~ ')') -%}{%- endif -%}
{%- if delta_cdc._may_tell_types(settings) -%}
  {%- do is_decimal.append(delta_cdc._is_decimal_type("rtrim('[]', semantic_types[name].type)")) -%}
{%- endif -%}
{%- if not is_decimal -%}{{ return(delta_cdc._no_types()) }}{%- endif -%}
{%- set images = [] -%}
{%- for image in ('after', 'before') + (('old_key', 'record_key') if delta_cdc._may_have_keys(settings) else ()) -%}
  {%- do images.append(delta_cdc._fields(image)) -%}
{%- endfor -%}
transform(array({{ 'if(semantic_types is null, null, ' if not decimals }}map_filter(coalesce({{ images | join(', ') }}),
    (name, value) ->
      ({{ is_decimal | join(' or ') }}) and schema_of_variant(value) rlike '^(ARRAY<)?(BIGINT|DECIMAL|DOUBLE)'){{ ')' if not decimals }}),
    numbers -> if(not coalesce(size(numbers) > 0, false), semantic_types, map_concat(
      coalesce(map_filter(semantic_types, (name, type) -> not map_contains_key(numbers, name)), map()),
      transform_values(numbers, (name, value) -> struct(cast(null as string) as type, cast(null as int) as scale)))))[0]
{%- endmacro %}


{#- What a message without a schema tells of its columns' types. -#}
{% macro _no_types() %}{{ return('cast(null as map<string, struct<type: string, scale: int>>)') }}{% endmacro %}

{#- Whether messages may tell their columns' types. -#}
{% macro _may_tell_types(settings) %}
  {{ return(delta_cdc.may_hold(settings, 'schemas') or delta_cdc.may_hold(settings, 'documents')) }}
{% endmacro %}


{#- Takes a message apart: batch_id, change_set, row_number, message, envelope variant, record_key, old_key variant,
    semantic_types map<column, struct<type, scale>> (null without a schema). What changes no row is left out.
    listed: the columns of the table, where it is of one. -#}
{% macro _debezium_envelopes(lines, settings, listed=[]) -%}
    {%- set has = "try_variant_get(envelope, '{}', 'variant') is not null" -%}
    {%- set row = delta_cdc._fields('payload') -%}
    {%- set whens = [] -%}
    {%- if delta_cdc.may_hold(settings, 'rows') -%}
      {%- do whens.append('when is_row then ' ~ delta_cdc._debezium_wrapped(row, listed)) -%}
    {%- endif -%}
    {%- if delta_cdc.may_hold(settings, 'cloud_events') -%}
      {%- do whens.append('when ' ~ delta_cdc.debezium_kinds().cloud_events ~ ' then ' ~ delta_cdc._debezium_of_cloud_event(row)) -%}
    {%- endif -%}
    {%- set envelope = 'case ' ~ whens | join(' ') ~ ' else payload end' if whens else 'payload' %}
    select * from (
      select batch_id, change_set, row_number, message, message_is_json, record_key, old_key, envelope,
        {{ delta_cdc._map_of('columns.field', delta_cdc._types_of_schema('columns')) if delta_cdc.may_hold(settings, 'schemas')
            else delta_cdc._no_types() }} as semantic_types
      from (
        {{ delta_cdc._lines_with('(' ~ delta_cdc._debezium_payloads(lines, settings) ~ ')', 'envelope', envelope) }}
      )
    )
    where if(try_variant_get(envelope, '$.op', 'string') is not null,
      -- a logical message of PostgreSQL, as it is or decoded
      not (contains(message, '"prefix') and try_variant_get(envelope, '$.op', 'string') = 'm')
        and not try_variant_get(envelope, '$.source.table', 'string') <=> '',
      not coalesce(
      message_is_json and (
        envelope is null or is_variant_null(envelope)  -- a tombstone
        or (try_variant_get(envelope, '$.status', 'string') in ('BEGIN', 'END')
            and {{ has.format('$.event_count') }})  -- transaction metadata
        or (({{ has.format('$.ddl') }} or {{ has.format('$.tableChanges') }} or {{ has.format('$.historyRecord') }})
            and ({{ has.format('$.source') }} or {{ has.format('$.databaseName') }}))  -- a schema change
        or map_keys({{ delta_cdc._fields('envelope') }}) in (array('ts_ms'), array('resolved'))),  -- a heartbeat
      false))
{%- endmacro %}


{#- Of each field of a schema the {type, scale} of its values; of a cell, {value, set} or {value}, those of what is in it; of a list
    those of its elements, and `[]` behind the type. -#}
{% macro _types_of_schema(fields) -%}
transform({{ fields }}, column -> transform(
          array(get(filter(column.fields, part -> part.field = 'value'
              and (exists(column.fields, other -> other.field = 'set') or column.name like '%.Cell')), 0)),
          cell -> struct(coalesce(cell.name, column.name, column.items.name || '[]') as type,
            try_cast(coalesce(cell.parameters.scale, column.parameters.scale, column.items.parameters.scale) as int)
              as scale))[0])
{%- endmacro %}


{#- The messages with `payload`: what they hold beside its schema, or as a Kafka record's value.
    is_row: whether that is a row alone. -#}
{% macro _debezium_payloads(lines, settings) -%}
{%- set kinds = delta_cdc.debezium_kinds() -%}
{%- set records, payloads = delta_cdc.may_hold(settings, 'records'), delta_cdc.may_hold(settings, 'payloads') -%}
{%- set parts = 'field string, name string, parameters struct<scale string>' -%}
{%- set items = 'items struct<name string, parameters struct<scale string>>' -%}
{%- set fields = 'array<struct<' ~ parts ~ ', ' ~ items ~ ', fields array<struct<' ~ parts ~ '>>>>' -%}
{%- set images = 'array<struct<field string, fields ' ~ fields ~ '>>' -%}
select batch_id, change_set, row_number, message, record is not null as message_is_json, is_row,
  {{ "if(is_bare_row, value, coalesce(try_variant_get(value, '$.payload', 'variant'), value))" if payloads else 'value' }} as payload,
  {%- for key in ('record_key', 'old_key') %}
  {{ delta_cdc._without_schema(key) if records and payloads else key }} as {{ key }},
  {%- endfor %}
  {%- if delta_cdc.may_hold(settings, 'schemas') %}
  case when is_row then try_variant_get(value, '$.schema.fields', '{{ fields }}')
    {%- for place in (0, 1) %}  {#- where most have it: the others' fields need not be read #}
    when try_variant_get(value, '$.schema.fields[{{ place }}].field', 'string') = 'after'
      then try_variant_get(value, '$.schema.fields[{{ place }}].fields', '{{ fields }}')
    {%- endfor %}
    else get(filter(if({{ kinds.cloud_events }},
        try_variant_get(value, '$.data.schema.fields', '{{ images }}'),
        try_variant_get(value, '$.schema.fields', '{{ images }}')),
      part -> part.field = 'after'), 0).fields end as columns
  {%- else %}
  null as columns
  {%- endif %}
from (
  select *, is_bare_row or {{ delta_cdc._debezium_is_row('value', '$.payload', settings) }} as is_row,
    {%- if records %}
    if(is_record, {{ delta_cdc._parsed("try_variant_get(record, '$.key', 'variant')", settings) }}, null) as record_key,
    if(is_record and contains(message, '"__debezium.oldkey"'), {{ delta_cdc._debezium_old_key('record') }}, null) as old_key
    {%- else %}
    cast(null as variant) as record_key, cast(null as variant) as old_key
    {%- endif %}
  from (
    select *, {{ delta_cdc._debezium_is_row('value', '$', settings) }} as is_bare_row
    from (
      select *,
        {%- if records %}
        case when is_record then {{ delta_cdc._parsed(
            "coalesce(try_variant_get(record, '$.value', 'variant'), try_variant_get(record, '$.payload', 'variant'))", settings) }}
          else record end
        {%- else %} record {%- endif %} as value
      from (
        select *
        {%- if records %}, not {{ delta_cdc._debezium_is_row('record', '$', settings) }}
            and try_variant_get(record, '$.op', 'string') is null
            and (try_variant_get(record, '$.payload', 'variant') is null
                or (has_texts and schema_of_variant(try_variant_get(record, '$.payload', 'variant')) = 'STRING'))
            and size(array_compact(array(try_variant_get(record, '$.topic', 'variant'),
                  try_variant_get(record, '$.key', 'variant'),
                  try_variant_get(record, '$.value', 'variant')))) > 1  -- a field with null is there too
            -- beside its images a changefeed of CockroachDB may tell `key` and `topic`
            and try_variant_get(record, '$.after', 'variant') is null
            and try_variant_get(record, '$.before', 'variant') is null as is_record
        {%- endif %}
        from (select *, if({{ delta_cdc._is_json_of_avro('message') }}, null, {{ delta_cdc._json_in('message') }}) as record,
          {{ kinds.rows }} as may_be_row,
          {{ kinds.texts }} and message rlike r'"(key|value|payload)"\s*:\s*"' as has_texts from {{ lines }})
      )
    )
  )
)
{%- endmacro %}


{#- Whether a text is Avro's JSON (`kafka-avro-console-consumer`), where what may be null is an object of its type, {"long": 1}, and
    an image one of its schema. It is not read: taken as it stands, it would be another row. -#}
{% macro _is_json_of_avro(text) %}
  {{ return("((contains(" ~ text ~ ", '{\"long\":') or contains(" ~ text ~ ", '{\"string\":')) and " ~ text
      ~ " rlike r'\"(?:ts_ms|__op|__deleted)\"\\s*:\\s*\\{\"(?:long|string)\":')") }}
{% endmacro %}


{#- Whether a variant holds, at a path, a row alone: columns of its table may have any name, `op`, `key` and `payload` too. -#}
{% macro _debezium_is_row(value, path, settings) -%}
{%- if not delta_cdc.may_hold(settings, 'rows') -%}{{ return('false') }}{%- endif -%}
(may_be_row and (try_variant_get({{ value }}, '{{ path }}.__op', 'string') is not null
            or try_variant_get({{ value }}, '{{ path }}.__deleted', 'string') is not null))
{%- endmacro %}

{#- The key before that a record's headers tell, JSON or the text of it: an object of headers, each its value or a list of such;
    names and values in turn (`kcat -J`); a list of {key, value} (`rpk topic consume`). -#}
{% macro _debezium_old_key(record) -%}
transform(array(try_variant_get({{ record }}, '$.headers', 'variant')), headers -> coalesce(
      try_parse_json(coalesce(
        get(filter(try_cast(headers as array<struct<key: string, value: string>>),
          each -> each.key = '__debezium.oldkey'), 0).value,
        transform(array(try_cast(headers as array<string>)), texts -> if(array_contains(texts, '__debezium.oldkey'),
          get(texts, cast(array_position(texts, '__debezium.oldkey') as int)), null))[0],
        try_variant_get(headers, '$["__debezium.oldkey"][0]', 'string'),
        if(schema_of_variant(try_variant_get(headers, '$["__debezium.oldkey"]', 'variant')) = 'STRING',
          try_variant_get(headers, '$["__debezium.oldkey"]', 'string'), null))),
      try_variant_get(headers, '$["__debezium.oldkey"]', 'variant')))[0]
{%- endmacro %}

{#- A part of a Kafka record that a tool wrote as text (`kcat -J`, which calls the value `payload`), as JSON. -#}
{% macro _parsed(part, settings) -%}
{%- if not delta_cdc.may_hold(settings, 'texts') -%}{{ return(part) }}{%- endif -%}
coalesce(if(has_texts and schema_of_variant({{ part }}) = 'STRING', try_parse_json(cast({{ part }} as string)), null), {{ part }})
{%- endmacro %}

{#- A key from beside its schema; one without a schema may have a column `payload`, whose value is no object. -#}
{% macro _without_schema(key) -%}
{%- set payload = 'try_variant_get(' ~ key ~ ", '$.payload', 'variant')" -%}
if({{ payload }} is null
      or (try_variant_get({{ key }}, '$.schema', 'variant') is null and not schema_of_variant({{ payload }}) like 'OBJECT%'),
    {{ key }}, {{ payload }})
{%- endmacro %}


{#- The name of a log, or a place in one, as text that sorts as its number does, which gains digits:
    mysql-bin.999999, mysql-bin.1000000. -#}
{% macro _padded(text) -%}
if({{ text }} rlike '^[^:]*[0-9]$',
      concat(regexp_extract({{ text }}, '^(.*?)[0-9]+$', 1), lpad(regexp_extract({{ text }}, '([0-9]+)$', 1), 20, '0')),
      {{ text }})
{%- endmacro %}


{#- The envelope of a row without one, from its map<string, variant>: what begins with `__` is of the envelope, its transaction
    (`__total_order`, where `add.fields` asks for it by this name alone) or its source; where the source tells its time, `__ts_us`
    is the envelope's. A column that is listed is the row's too. -#}
{% macro _debezium_wrapped(row, listed) -%}
{%- set own = [] -%}
{%- for column in listed if column.startswith('__') %}{% do own.append(column) %}{% endfor -%}
{%- set is_own = " or name in (" ~ delta_cdc._literals(own) ~ ")" if own else "" -%}
transform(array({{ row }}), row -> to_variant_object(named_struct(
          'op', if(cast(row['__deleted'] as string) = 'true', 'd', coalesce(cast(row['__op'] as string), 'u')),
          'ts_ms', row['__ts_ms'],
          'after', to_variant_object(map_filter(row, (name, value) -> not startswith(name, '__'){{ is_own }})),
          'transaction', named_struct('id', row['__transaction_id'], 'total_order',
            coalesce(row['__transaction_total_order'], row['__total_order'])),
          'source', to_variant_object(transform_keys(
            map_filter(row, (name, value) -> startswith(name, '__source_')
                or (startswith(name, '__') and not map_contains_key(row, '__source_' || substr(name, 3))
                  and not (startswith(name, '__ts_') and exists(map_keys(row), other -> startswith(other, '__source_ts_'))))),
            (name, value) -> regexp_replace(name, '^__(source_)?', ''))))))[0]
{%- endmacro %}


{#- The envelope that a CloudEvent tells, from its map<string, variant>: its attributes are the fields of the envelope and of its
    source, without underscores; `iodebeziumtx…` those of the transaction. -#}
{% macro _debezium_of_cloud_event(event) -%}
{%- set image = "coalesce(try_variant_get(event['data'], '$.payload.{0}', 'variant'), "
      ~ "try_variant_get(event['data'], '$.{0}', 'variant'))" -%}
transform(array({{ event }}), event -> to_variant_object(named_struct(
          'op', event['iodebeziumop'], 'after', {{ image.format('after') }}, 'before', {{ image.format('before') }},
          'transaction', named_struct('id', event['iodebeziumtxid'], 'total_order', event['iodebeziumtxtotalorder']),
          'source', to_variant_object(transform_keys(map_filter(event, (name, value) -> startswith(name, 'iodebezium')),
            (name, value) -> coalesce(
              map('tsms', 'ts_ms', 'tsus', 'ts_us', 'commitlsn', 'commit_lsn', 'changelsn', 'change_lsn',
                'eventserialno', 'event_serial_no', 'valuecapturetype', 'value_capture_type')[substr(name, 11)],
              substr(name, 11)))))))[0]
{%- endmacro %}


{#- By the type that is wanted and, where the message has its schema, the semantic type that it names for the column. Without one it
    tells which decimals came as numbers. -#}
{% macro debezium_value(text, type, settings, column) %}
  {%- set type = type | trim -%}
  {%- set has_semantic = delta_cdc._may_tell_types(settings) or (type | lower).startswith(('decimal', 'numeric')) -%}
  {%- set semantic = delta_cdc._debezium_semantic(settings, column) if has_semantic else none -%}
  {%- if semantic and (type | lower).startswith('array<') -%}
    {%- set of_element = "struct(rtrim('[]', " ~ semantic ~ ".type) as type, " ~ semantic ~ ".scale as scale)" -%}
    {{ return('if(' ~ delta_cdc._is_list(semantic) ~ ', ' ~ delta_cdc._debezium_list(text, type, settings, of_element) ~ ', '
        ~ delta_cdc._plain_value(text, type) ~ ')') }}
  {%- endif -%}
  {{ return(delta_cdc._debezium_scalar(text, type, settings, semantic)) }}
{% endmacro %}

{#- A list whose elements the schema tells is null where one does not fit, and their texts are not those of a plain list. plain: SQL
    of what holds of that. -#}
{% macro debezium_misfits(text, value, settings, column, plain) %}
  {%- if not ((settings.column_types[column] | lower).startswith('array') and delta_cdc._may_tell_types(settings)) -%}
    {{ return(plain) }}
  {%- endif -%}
  {{ return('if(coalesce(' ~ delta_cdc._is_list(delta_cdc._debezium_semantic(settings, column)) ~ ', false), '
      ~ text ~ ' is not null and ' ~ value ~ ' is null, ' ~ plain ~ ')') }}
{% endmacro %}

{#- By the type that is wanted alone, where the schema is not known any more. -#}
{% macro debezium_value_alone(text, type, settings) %}
  {%- set type = type | trim -%}
  {%- if (type | lower).startswith('array<') -%}
    {{ return('coalesce(' ~ delta_cdc._debezium_list(text, type, settings, none) ~ ', '
        ~ delta_cdc._plain_value(text, type) ~ ')') }}
  {%- endif -%}
  {{ return(delta_cdc._debezium_scalar(text, type, settings, none)) }}
{% endmacro %}

{#- SQL: what the schema says of a column, {type, scale}. -#}
{% macro _debezium_semantic(settings, column) %}
  {%- set semantic = '_semantic_types[' ~ delta_cdc.literal(column) ~ ']' -%}
  {%- set old = (settings.get('renamed_columns') or {}).get(column) -%}
  {{ return('coalesce(' ~ semantic ~ ', _semantic_types[' ~ delta_cdc.literal(old) ~ '])' if old else semantic) }}
{% endmacro %}

{#- SQL: whether it is of a list whose elements the schema tells. -#}
{% macro _is_list(semantic) %}{{ return('endswith(' ~ semantic ~ ".type, '[]')") }}{% endmacro %}

{#- A list, element by element; one that does not fit is none that is null. semantic: of an element. -#}
{% macro _debezium_list(text, type, settings, semantic) -%}
{%- set type_of_element = delta_cdc._spelled_type(type[6:-1]) | trim -%}
transform(array(try_cast(try_parse_json({{ text }}) as array<string>)), texts -> transform(
    array(transform(texts, text -> {{ delta_cdc._debezium_scalar('text', type_of_element, settings, semantic) }})),
    made -> if(size(array_compact(texts)) = size(array_compact(made)), made, null))[0])[0]
{%- endmacro %}

{#- A value, or an element of a list. semantic: the schema's {type, scale} of it; none: no message tells it. -#}
{% macro _debezium_scalar(text, type, settings, semantic) %}
  {%- set word = type | lower -%}
  {%- if word.startswith(('decimal', 'numeric')) and settings.decimal_handling == 'precise' -%}
    {{ return(delta_cdc._debezium_decimal(text, word, semantic)) }}
  {%- elif word == 'date' -%}
    {{ return(delta_cdc._debezium_date(text, settings, semantic)) }}
  {%- elif word in ('timestamp', 'timestamp_ntz') -%}
    {{ return(delta_cdc._debezium_moment(text, word, settings, semantic)) }}
  {%- elif word == 'binary' -%}
    {{ return(delta_cdc._debezium_bytes(text, semantic)) }}
  {%- elif word in ('tinyint', 'smallint', 'int', 'integer', 'bigint', 'float', 'real', 'double') -%}
    {{ return(delta_cdc._debezium_number(text, word, semantic)) }}
  {%- elif semantic and word in ('string', 'text') and settings.decimal_handling == 'precise' -%}
    {{ return("if(" ~ delta_cdc._is_decimal(semantic) ~ ", " ~ delta_cdc._precise_text(text, semantic) ~ ", " ~ text ~ ")") }}
  {%- endif -%}
  {{ return(delta_cdc._plain_value(text, type)) }}  {#- to JSON, case makes a difference in names of fields -#}
{% endmacro %}

{#- Whole numbers come as such: MySQL's BIGINT UNSIGNED, Oracle's NUMBER(9). -#}
{% macro _debezium_decimal(text, type, semantic) -%}
{%- set scale = type.split(',')[1].rstrip(') ') | int if ',' in type else 0 -%}
{%- if not semantic -%}{{ return('try_cast(' ~ delta_cdc._precise(text, none, scale) ~ ' as ' ~ type ~ ')') }}{%- endif -%}
try_cast(case when {{ semantic }} is not null and {{ semantic }}.type is null then {{ text }}
    when {{ semantic }}.type = 'io.debezium.data.Bits' then {{ delta_cdc._bits_as_number(text) }}
    else {{ delta_cdc._precise(text, semantic, scale) }} end as {{ type }})
{%- endmacro %}

{#- Oracle's FLOAT and INTEGER come as decimals. -#}
{% macro _debezium_number(text, type, semantic) -%}
case
    {%- if semantic %} when {{ semantic }}.type = 'io.debezium.data.Bits' then try_cast({{ delta_cdc._bits_as_number(text) }} as {{ type }})
    {%- endif %}
    when {{ delta_cdc._is_decimal(semantic) ~ ' or ' if semantic }}startswith({{ text }}, '{')
      then try_cast({{ delta_cdc._whole(delta_cdc._precise(text, semantic, 0), type) }} as {{ type }})
    else {{ delta_cdc._plain_value(text, type) }} end
{%- endmacro %}

{% macro _debezium_bytes(text, semantic) -%}
{%- set binary = "try_to_binary(translate(" ~ text ~ ", '-_', '+/'), 'base64')" -%}
{%- if not semantic -%}{{ return(binary) }}{%- endif -%}
if({{ semantic }}.type <=> 'io.debezium.data.Bits', unhex({{ delta_cdc._bits(text) }}),
    {{ binary }})
{%- endmacro %}

{#- A day. A year is none. -#}
{% macro _debezium_date(text, settings, semantic) -%}
{%- set counted = 'date_from_unix_date(try_cast(' ~ text ~ ' as int))' -%}
{%- set written = "try_cast(rtrim('Z', " ~ text ~ ") as date)" -%}
{%- set parts = 'cast(' ~ delta_cdc._in_utc(delta_cdc._of_parts(text, zoned=false)) ~ ' as date)' -%}
{%- if not semantic -%}{{ return('coalesce(' ~ [counted, written, parts] | join(', ') ~ ')') }}{%- endif -%}
if({{ semantic }}.type <=> 'io.debezium.time.Year', null, coalesce(
    if({{ semantic }}.type like '%Timestamp',
      cast({{ delta_cdc._in_utc(delta_cdc._counted(text, settings, semantic)) }} as date),
      {{ counted }}),
    {{ written }},
    {{ parts }}))
{%- endmacro %}

{#- A timestamp, or timestamp_ntz: counted, as days too, written, or told in parts. -#}
{% macro _debezium_moment(text, type, settings, semantic) -%}
{%- set counted = delta_cdc._counted(text, settings, semantic) -%}
{%- if semantic -%}
{%- set counted -%}
if({{ semantic }}.type in ('io.debezium.time.Date', 'org.apache.kafka.connect.data.Date'),
    timestamp_micros(try_multiply(try_cast({{ text }} as int), 86400000000L)), {{ counted }})
{%- endset -%}
{%- endif -%}
{#- io.debezium.time.IsoDate ends in Z and has no time, which Spark does not read -#}
{%- set written = "regexp_replace(" ~ text ~ ", '^([^T ]+)Z$', '$1T00:00:00Z')" -%}
{%- set parts = delta_cdc._of_parts(text, zoned=type == 'timestamp') -%}
coalesce({{ delta_cdc._in_utc(counted) if type == 'timestamp_ntz' else counted }},
    {{ delta_cdc._cast_text(written, type) }},
    {{ delta_cdc._in_utc(parts) if type == 'timestamp_ntz' else parts }})
{%- endmacro %}

{#- A number that counts from 1970 as a timestamp: in the unit that the schema tells, else in the settings'. Of 24 digits: their
    product with a million, divided, still fits a decimal. -#}
{% macro _counted(text, settings, semantic) -%}
{%- set unit = {'seconds': 1, 'millis': 1000, 'micros': 1000000, 'nanos': 1000000000}[settings.time_unit] -%}
timestamp_micros(try_cast(floor(try_cast({{ text }} as decimal(24, 0)) * 1000000 / {% if semantic %}coalesce(
    case {{ semantic }}.type when 'io.debezium.time.Timestamp' then 1000 when 'org.apache.kafka.connect.data.Timestamp' then 1000
      when 'io.debezium.time.MicroTimestamp' then 1000000 when 'io.debezium.time.NanoTimestamp' then 1000000000 end,
    {{ unit }}){% else %}{{ unit }}{% endif %}) as bigint))
{%- endmacro %}

{#- A moment of `time.precision.mode` structured, an object of its parts, as a timestamp; null for what is none. zoned: false
    where the column has no time zone: then its clock in UTC, for of a text with an offset Spark takes the clock, too. -#}
{% macro _of_parts(text, zoned=true) -%}
if(startswith({{ text }}, '{'),
  transform(array(from_json({{ text }},
      'year int, month int, day int, hour int, minute int, second int, nanos int, offsetSeconds int')),
    part -> timestampadd(second, {{ '-coalesce(part.offsetSeconds, 0)' if zoned else '0' }},
      try_make_timestamp(part.year, part.month, part.day, coalesce(part.hour, 0), coalesce(part.minute, 0),
        cast(coalesce(part.second, 0) + coalesce(part.nanos div 1000, 0) / 1000000 as decimal(16, 6)), 'UTC')))[0],
  null)
{%- endmacro %}


{% macro _is_decimal(semantic) %}{{ return(delta_cdc._is_decimal_type(semantic ~ '.type')) }}{% endmacro %}

{% macro _is_decimal_type(type) %}
  {{ return('coalesce(' ~ type
      ~ " in ('io.debezium.data.VariableScaleDecimal', 'org.apache.kafka.connect.data.Decimal'), false)") }}
{% endmacro %}


{#- Debezium's Bits, in base64 and the lowest byte first, as hexadecimal digits with the highest first. -#}
{% macro _bits(text) -%}
reverse(regexp_replace(hex(try_to_binary({{ text }}, 'base64')), '(.)(.)', '$2$1'))
{%- endmacro %}


{#- The same in decimal digits, of up to 128 bits; null beyond. -#}
{% macro _bits_as_number(text) -%}
transform(array({{ delta_cdc._bits(text) }}), bytes -> {{ delta_cdc._of_hexadecimal("lpad(bytes, 32, '0')", 10) }})[0]
{%- endmacro %}

{#- What `bytes`, hexadecimal digits, tells as decimal digits; null for more than 32. padded: the same in 32 digits. base: 10, or
    -10 where the first half has a sign. -#}
{% macro _of_hexadecimal(padded, base) -%}
cast(case when length(bytes) <= 32 then try_add(
    try_multiply(cast(conv(left({{ padded }}, 16), 16, {{ base }}) as decimal(20, 0)), 18446744073709551616BD),
    cast(conv(right({{ padded }}, 16), 16, 10) as decimal(20, 0))) end as string)
{%- endmacro %}


{#- A decimal of `decimal.handling.mode` precise as struct<digits: string, scale: int>: Kafka Connect's Decimal, or Debezium's
    VariableScaleDecimal with its own scale. scale: where no schema tells it. unscaled: a macro that reads the digits. -#}
{% macro _unscaled_and_scale(text, semantic, scale, unscaled) -%}
{%- set has_scale, number = "startswith(" ~ text ~ ", '{')", "try_parse_json(" ~ text ~ ")" -%}
struct({{ unscaled("if(" ~ has_scale ~ ", try_variant_get(" ~ number ~ ", '$.value', 'string'), " ~ text ~ ")") }} as digits,
    if({{ has_scale }}, cast(try_variant_get({{ number }}, '$.scale', 'decimal(4, 0)') as int),
      {{ 'coalesce(' ~ semantic ~ '.scale, ' ~ scale ~ ')' if semantic else scale }}) as scale)
{%- endmacro %}

{#- Such a decimal as text that Spark casts to a decimal: 2490E-2. -#}
{% macro _precise(text, semantic, scale) -%}
transform(array({{ delta_cdc._unscaled_and_scale(text, semantic, scale, delta_cdc._unscaled) }}),
    number -> concat(number.digits, 'E', -number.scale))[0]
{%- endmacro %}

{#- Such a decimal as people write it: 24.90. -#}
{% macro _precise_text(text, semantic) -%}
{%- set padded = "lpad(ltrim('-', number.digits), greatest(length(ltrim('-', number.digits)), number.scale + 1), '0')" -%}
transform(array({{ delta_cdc._unscaled_and_scale(text, semantic, 0, delta_cdc._unscaled_of_any_length) }}),
    number -> if(number.scale <= 0,
      if(number.digits = '0', '0', concat(number.digits, repeat('0', -number.scale))),
      concat(if(startswith(number.digits, '-'), '-', ''),
        left({{ padded }}, length({{ padded }}) - number.scale), '.', right({{ padded }}, number.scale))))[0]
{%- endmacro %}

{#- Text with an exponent is no whole number to Spark, and one with something behind the point is none. -#}
{% macro _whole(text, type) %}
  {%- if type in ('float', 'real', 'double') %}{{ return(text) }}{% endif -%}
  {%- set whole = 'try_cast(number as decimal(38, 0))' -%}
  {{ return('transform(array(' ~ text ~ '), number -> if(try_cast(' ~ whole
      ~ ' as decimal(38, 18)) = try_cast(number as decimal(38, 18)), ' ~ whole ~ ', null))[0]') }}
{% endmacro %}


{#- Kafka Connect's Decimal: the unscaled value in base64, big-endian two's complement, here up to 16 bytes, as decimal text. -#}
{% macro _unscaled(base64_text) -%}
transform(array(hex(try_to_binary({{ base64_text }}, 'base64'))),
    bytes -> {{ delta_cdc._of_hexadecimal("lpad(bytes, 32, if(bytes >= '8', 'F', '0'))", -10) }})[0]
{%- endmacro %}

{#- The same of any length: Horner's scheme, six hexadecimal digits at a time, on limbs of nine decimal digits with the lowest
    first. A negative number is its complement and one. -#}
{% macro _unscaled_of_any_length(base64_text) -%}
{%- set parts -%}
regexp_extract_all(lpad(if(bytes >= '8', translate(bytes, '0123456789ABCDEF', 'FEDCBA9876543210'), bytes),
    cast(6 * ceil(length(bytes) / 6) as int), '0'), '.{6}', 0)
{%- endset -%}
{%- set limbs -%}
aggregate(
    transform({{ parts }}, (part, place) -> cast(conv(part, 16, 10) as bigint)
      + if(bytes >= '8' and place = size({{ parts }}) - 1, 1, 0)),
    array(0L),
    (limbs, part) -> aggregate(limbs, struct(part as carry, cast(array() as array<bigint>) as done),
      (sum, limb) -> struct((limb * 16777216 + sum.carry) div 1000000000 as carry,
        array_append(sum.done, (limb * 16777216 + sum.carry) % 1000000000) as done),
      sum -> array_append(sum.done, sum.carry)))
{%- endset -%}
transform(array(hex(try_to_binary({{ base64_text }}, 'base64'))), bytes -> if(bytes is null, null,
    concat(if(bytes >= '8', '-', ''), coalesce(nullif(ltrim('0',
      array_join(transform(reverse({{ limbs }}), limb -> lpad(cast(limb as string), 9, '0')), '')), ''), '0'))))[0]
{%- endmacro %}


{#- schema.table (PostgreSQL, SQL Server, Oracle), db.table (MySQL), db.collection (MongoDB) or keyspace.table (Cassandra).
    settings: with what is known of the lines' kinds; none is needed. -#}
{% macro debezium_tables(lines, settings={}) -%}
select batch_id, change_set, row_number, message,
  nullif(concat_ws('.', {{ delta_cdc._debezium_source(['schema', 'schema_name', 'db', 'keyspace']) }},
    {{ delta_cdc._debezium_source(['table', 'table_name', 'collection']) }}), '') as source_table
from ({{ delta_cdc._debezium_envelopes(lines, settings) }})
{%- endmacro %}

{#- The first of these fields of `source` that there is; Vitess writes an empty `db`. -#}
{% macro _debezium_source(names) -%}
coalesce(
{%- for name in names -%}
  nullif(try_variant_get(envelope, '$.source.{{ name }}', 'string'), ''){{ ', ' if not loop.last }}
{%- endfor -%}
)
{%- endmacro %}
