"""python -m bench.compare SPARK_FOLDER TABLE… -- FOLDER…

For each warehouse folder and table, the number of live rows and a hash over their columns, as JSON:
{folder: {table: [rows, hash]}}.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dbt.adapters.sparkdelta.session import root_session

COLUMNS = "id, seq, name, amount, day"


def main(spark_folder: str, *arguments: str) -> None:
    cut = arguments.index("--")
    spark = root_session(root=spark_folder)
    found: dict[str, dict[str, list[str]]] = {}
    for folder in arguments[cut + 1 :]:
        found[folder] = {}
        for table in arguments[:cut]:
            rows = spark.read.format("delta").load(str(Path(folder) / f"final_{table}"))
            live = rows.where("not is_deleted") if "is_deleted" in rows.columns else rows
            found[folder][table] = [
                str(value)
                for value in live.selectExpr("count(*)", f"sum(cast(xxhash64({COLUMNS}) as decimal(38,0)))").collect()[0]
            ]
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
