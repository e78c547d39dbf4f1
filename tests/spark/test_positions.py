"""A position that is noted as text is the same position when it is read back."""

from __future__ import annotations

from tests.unit.macros import load

MACROS = load()
FIELDS = {
    "at": "timestamp'1830-05-01 10:00:00.123456'",  # Amsterdam's offset had seconds then
    "local_at": "timestamp_ntz'2026-01-02 03:04:05.000001'",
    "amount": "cast(1234567890123456789.000000001 as decimal(38,9))",
    "text": "'q\"\\'\\\\ä'",
    "lsn": "9223372036854775807",
    "day": "date'0001-01-01'",
    "flag": "true",
    "nothing": "cast(null as int)",
    "place": "struct('mysql-bin.000003' as log, cast('99999999999999999999999999999999999999' as decimal(38,0)) as offset)",
    "half": "struct(cast(null as string) as log, 1 as offset)",
    "none": "cast(null as struct<log: string, offset: int>)",
}


def test_O1_a_noted_position_is_read_back_exactly(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Amsterdam")
    sequence = ", ".join(f"{value} as {name}" for name, value in FIELDS.items())
    position = f"struct(struct({sequence}) as _cdc_sequence, cast(5 as bigint) as _cdc_ordinal)"
    noted = session.sql(f"select {MACROS['json_of'](position)} as json, typeof({position}) as type").first()
    assert MACROS["can_be_noted"](noted.type, noted.json)
    read_back = MACROS["position_of"](noted.json, noted.type)
    assert session.sql(f"select {read_back} <=> {position}, {read_back} <= {position}").first() == (True, True)


def test_O1_a_moment_that_json_cannot_hold_is_not_noted(spark):
    position = "struct(struct(timestamp'+12026-01-01 00:00:00' as at) as _cdc_sequence, cast(null as bigint) as _cdc_ordinal)"
    options = MACROS["json_options"]()
    noted = spark.sql(f"select to_json({position}, {options}) as json, typeof({position}) as type").first()
    assert not MACROS["can_be_noted"](noted.type, noted.json)


def test_O4_a_late_change_that_a_load_has_twice_is_repeated(spark):
    settings = {
        "column_types": {"id": "int", "seq": "int"},
        "sequence_by": ["seq"],
        "split_key_changes": False,
        "keys": ["id"],
        "keyless": "none",
    }
    spark.sql(
        """create or replace temporary view loaded as select *, 'U' as _cdc_op, cast(null as string) as _cdc_key_before,
          struct(seq) as _cdc_sequence, cast(null as bigint) as _cdc_ordinal, cast(null as string) as _cdc_error,
          cast(null as string) as _cdc_raw, cast(array() as array<string>) as _cdc_missing, seq as _cdc_occurred_at,
          cast(null as map<string, string>) as _cdc_undeclared
        from values (1, 3), (1, 3), (2, 4), (3, 9), (3, 9), (3, 9) as loaded (id, seq)"""
    )
    highest = "struct(struct(5 as seq) as _cdc_sequence, cast(null as bigint) as _cdc_ordinal)"
    for much in (False, True):
        found = spark.sql(MACROS["about_changes"]("loaded", highest, to_stage={**settings, "reads_much": much})).first()
        assert (found.late, found.repeated, found.late_repeated) == (3, 3, 1)
        first = spark.sql(MACROS["about_changes"]("loaded", None, to_stage={**settings, "reads_much": much})).first()
        assert (first.late, first.repeated, first.late_repeated) == (0, 3, 0)
