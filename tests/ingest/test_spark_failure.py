"""What a user is told of a failure in Spark."""

from __future__ import annotations

from slackwater.ingest.spark_failure import MOST_LINES, user_cause

JOB = """An error occurred while calling o76.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed \
4 times, most recent failure: Lost task 0.3: org.apache.spark.api.python.PythonException: \
Traceback (most recent call last):
  File "/venv/pyspark/worker.py", line 1247, in main
    process()
    ^^^^^^^^^
  File "/venv/pyspark/python/lib/pyspark.zip/pyspark/worker.py", line 1239, in process
    serializer.dump_stream(out_iter, outfile)
  File "/jobs/clean.py", line 12, in speed
    return metres / seconds
           ~~~~~~~^~~~~~~~~
ZeroDivisionError: division by zero

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(X.scala:572)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""

JVM = """An error occurred while calling o53.count.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2856)
Caused by: org.apache.spark.SparkException: Encountered error while reading file
\tat org.apache.spark.sql.Reader.next(Reader.scala:1)
\t... 12 more
Caused by: java.lang.RuntimeException: bus.parquet is not a Parquet file
\tat org.apache.parquet.hadoop.ParquetFileReader.readFooter(ParquetFileReader.java:576)
\t... 14 more
"""


def test_a_failing_udf_is_told_with_the_users_own_frames_only() -> None:
    assert user_cause(RuntimeError(JOB)) == (
        '  File "/jobs/clean.py", line 12, in speed\n'
        "    return metres / seconds\n"
        "           ~~~~~~~^~~~~~~~~\n"
        "ZeroDivisionError: division by zero"
    )


def test_of_tracebacks_in_tracebacks_the_innermost_is_told() -> None:
    outer = 'Traceback (most recent call last):\n  File "/x/py4j/y.py", line 1\n    call()\n'
    assert user_cause(RuntimeError(outer + JOB)) == user_cause(RuntimeError(JOB))


def test_a_failure_in_the_jvm_is_told_by_its_last_cause_without_the_stack() -> None:
    told = user_cause(RuntimeError(JVM))
    assert told == "java.lang.RuntimeException: bus.parquet is not a Parquet file"


def test_what_has_no_stack_is_told_as_it_is() -> None:
    missing = "[PATH_NOT_FOUND] Path does not exist: file:/nowhere."
    assert user_cause(RuntimeError(missing)) == missing
    assert user_cause(TimeoutError()) == "TimeoutError"


def test_a_message_of_a_hundred_lines_is_cut_from_the_front() -> None:
    told = user_cause(RuntimeError("\n".join(f"line {number}" for number in range(100))))
    assert told.splitlines()[0] == "..."
    assert told.splitlines()[-1] == "line 99"
    assert len(told.splitlines()) == MOST_LINES
