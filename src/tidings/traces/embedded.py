"""What Spark does over and over, or twice, where it runs inside one Java with us; done once.

Its Python asks Java for a function before every call of it: to find out that ``functions`` is a
class, Java looks for it in every package it knows, and then whether ``col`` is a method of it. A
characterisation calls such functions thousands of times.

And what it compiles it keeps by class loader. Tasks have a loader of their own, so that planning
compiles every stage, and the first task of the stage compiles it again.
"""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext

# As Spark's Python names what it calls most: the functions of columns, and lists of columns.
_CLASSES = ("functions", "org.apache.spark.sql.functions", "PythonUtils")
_OF_TASKS = "Executor task "  # begins the names of the threads that run tasks


class KnownClass:
    """A class of Java, each of whose static methods is looked up once."""

    def __init__(self, java_class: Any) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        """Look up a method that was not called before, and keep it as an attribute."""
        method = getattr(self._java_class, name)
        setattr(self, name, method)
        return method


def look_up_once(context: SparkContext) -> None:
    """Keep the classes that Spark's Python calls most, and their methods, once they are found."""
    jvm: Any = context._jvm
    for name in _CLASSES:
        known = getattr(jvm, name)
        if not isinstance(known, KnownClass):  # Java outlives a session, and may have another
            setattr(jvm, name, KnownClass(known))


def compile_once(context: SparkContext) -> None:
    """Let queries be planned with the class loader that tasks have; for ``local`` masters.

    Threads that are begun later inherit it. Tasks have theirs once one has run: an empty one does.
    """
    jvm: Any = context._jvm
    jsc: Any = context._jsc
    jsc.emptyRDD().repartition(1).count()
    threads = list(jvm.java.lang.Thread.getAllStackTraces().keySet())
    running = [each for each in threads if each.getName().startswith(_OF_TASKS)]
    if not running:
        return
    ours = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    theirs = running[0].getContextClassLoader()
    for each in threads:
        loader = each.getContextClassLoader()
        if loader is not None and loader.equals(ours):
            each.setContextClassLoader(theirs)
