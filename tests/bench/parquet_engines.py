"""How long an engine takes to sum the kernels of a Parquet data set by name, over all runs and ranks. Prints a figure.

  parquet_engines.py duckdb|spark|chdb DIRECTORY
"""
import json
import sys
import time

DUCKDB = '''SELECT name, count(*), sum(duration_ns)::bigint FROM
read_parquet('{}/kernels/*/*/*.parquet', hive_partitioning = true) GROUP BY name ORDER BY name'''
CHDB = '''SELECT name, count(*), sum(duration_ns) FROM file('{}/kernels/run=*/rank=*/*.parquet', Parquet)
GROUP BY name ORDER BY name'''


def by_duckdb(path):
    import duckdb
    return lambda: duckdb.sql(DUCKDB.format(path)).fetchall()


def by_chdb(path):
    import chdb
    query = CHDB.format(path)
    return lambda: [tuple(json.loads(line)) for line in
                    str(chdb.query(query, 'JSONCompactEachRow')).splitlines()]


def by_spark(path):
    from pyspark.sql import SparkSession
    spark = (SparkSession.builder.master('local[*]').config('spark.ui.enabled', 'false')
             .config('spark.driver.bindAddress', '127.0.0.1').config('spark.driver.host', '127.0.0.1')
             .config('spark.log.level', 'ERROR').getOrCreate())
    return lambda: [tuple(row) for row in spark.read.parquet(f'{path}/kernels').groupBy('name').agg(
        {'*': 'count', 'duration_ns': 'sum'}).selectExpr('name', '`count(1)`', '`sum(duration_ns)`')
        .orderBy('name').collect()]


def main():
    engine, path = sys.argv[1:]
    ask = {'duckdb': by_duckdb, 'spark': by_spark, 'chdb': by_chdb}[engine](path)
    begin = time.monotonic()
    rows = ask()
    seconds = time.monotonic() - begin
    kernels, ns = sum(int(row[1]) for row in rows), sum(int(row[2]) for row in rows)
    print(json.dumps({'name': f'64 x 1 M kernels summed by name: {engine}', 'value': seconds, 'unit': 's',
                      'floor_name': '', 'floor': 0, 'target': 0, 'at_least': False,
                      'note': f'{kernels} kernels, {len(rows)} names, {ns} ns'}))


if __name__ == '__main__':
    main()
