# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a Grafana dashboard asks Prometheus for.

dashboard.py metrics FILE    the metrics that its expressions and variables name, sorted
dashboard.py ids FILE        the ids of all panels
dashboard.py rules FILE      its expressions as a file of recording rules, with values for variables
"""
import json
import re
import sys

# A name that a selector or function call ends is a metric here: all of the program's start so.
METRIC = re.compile(r"\bxdp_cuckoo_[a-z0-9_]+")


def panels(of):
    for panel in of.get("panels", []):
        yield panel
        yield from panels(panel)


def expressions(dashboard):
    return [target["expr"] for panel in panels(dashboard) for target in panel.get("targets", [])]


def metrics(dashboard):
    variables = [v["definition"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    return sorted({name for text in expressions(dashboard) + variables for name in METRIC.findall(text)})


def with_values(expression):
    text = expression.replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$name", ".*")
    assert "$" not in text, "a variable without a value: " + text
    return text


def rules(dashboard):
    rows = [{"record": "expression:%d" % i, "expr": with_values(e)} for i, e in enumerate(expressions(dashboard))]
    return [json.dumps({"groups": [{"name": "dashboard", "rules": rows}]}, indent=1)]


def ids(dashboard):
    return [panel["id"] for panel in panels(dashboard)]


with open(sys.argv[2], encoding="utf-8") as file:
    for line in {"metrics": metrics, "ids": ids, "rules": rules}[sys.argv[1]](json.load(file)):
        print(line)
