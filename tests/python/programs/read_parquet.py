"""Reads Parquet files with other people's readers: a JSON object of queries on stdin, their answers on stdout.

{"sql": [QUERY...]} asks DuckDB, {"files": [PATH...]} pyarrow: each row group's columns with their statistics, which it
holds against the values themselves.
"""
import json
import sys


def metadata(path):
    import pyarrow.compute
    import pyarrow.parquet
    about = pyarrow.parquet.read_metadata(path)
    file = pyarrow.parquet.ParquetFile(path)
    groups = []
    for i in range(about.num_row_groups):
        values = file.read_row_group(i)
        values.validate(full=True)
        columns = {}
        for j in range(about.num_columns):
            column, held = about.row_group(i).column(j), values.column(j)
            statistics, bounds = column.statistics, pyarrow.compute.min_max(held).as_py()
            columns[column.path_in_schema] = {
                'compression': column.compression, 'encodings': list(column.encodings),
                'nulls_right': statistics.null_count == held.null_count,
                'bounds_right': (not statistics.has_min_max and held.null_count == len(held)) or
                                (statistics.min, statistics.max) == (bounds['min'], bounds['max'])}
        sorted_by = [[key.column_index, key.descending] for key in about.row_group(i).sorting_columns]
        groups.append({'rows': about.row_group(i).num_rows, 'columns': columns, 'sorted_by': sorted_by})
    return {'rows': about.num_rows, 'types': {f.name: str(f.type) for f in file.schema_arrow}, 'groups': groups}


def main():
    wanted = json.load(sys.stdin)
    answer = {}
    if 'sql' in wanted:
        import duckdb
        answer['sql'] = [duckdb.sql(query).fetchall() for query in wanted['sql']]
    if 'files' in wanted:
        answer['files'] = [metadata(path) for path in wanted['files']]
    json.dump(answer, sys.stdout, default=str)


main()
