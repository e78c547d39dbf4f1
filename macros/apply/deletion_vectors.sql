{#-
  Deletion vectors mark replaced rows instead of rewriting their files. Writing them makes the merge of a small table two fifths
  dearer (2 cores, 300 rows); a large one is spared the copying of its files. `deletion_vectors: auto`: a table gains them once a
  commit had to write more than 200,000 rows, its first load included.
-#}
{% macro gain_deletion_vectors(settings, state) %}
  {%- if settings.deletion_vectors == 'auto' and (state.rows or 0) > 200000
        and state.properties.get('delta.enableDeletionVectors') != 'true' -%}
    {%- do delta_cdc.write_before('alter table ' ~ this ~ " set tblproperties ('delta.enableDeletionVectors' = 'true')") -%}
  {%- endif -%}
{% endmacro %}
