"""The dbt adapter `type: sparkdelta`: dbt-spark with its in-process session made right for Delta Lake.

Public here: `Write`, what a Python model may return, and `Plugin`, which dbt loads.
"""

from dbt.adapters.base import AdapterPlugin

from dbt.adapters.sparkdelta.connections import SparkdeltaCredentials
from dbt.adapters.sparkdelta.impl import SparkdeltaAdapter
from dbt.adapters.sparkdelta.write_plan import Write
from dbt.include import sparkdelta

__all__ = ["Plugin", "Write"]

Plugin = AdapterPlugin(
    adapter=SparkdeltaAdapter,  # type: ignore[arg-type]
    credentials=SparkdeltaCredentials,
    include_path=sparkdelta.PACKAGE_PATH,
    dependencies=["spark"],
)
