#!/usr/bin/env python3
"""Findings for a code host.

`findings.py run RUN.jsonl` prints the violations of a run as SARIF. `findings.py annotate FILE.sarif STATUS WHERE` prints the
findings as Markdown, and writes an annotation for each to standard error.
"""
import json
import sys


def violations_to_sarif(path):
    """Returns the violations of a run as a SARIF log."""
    results = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if record.get("verdict") != "violates":
                continue
            replay = record.get("replay") or ""
            results.append({
                "ruleId": "violates",
                "level": "error",
                "message": {"text": f"{record['id']} on {record['device']}: {record.get('detail')}. Again: {replay}"},
                "locations": [{
                    "logicalLocations": [{"fullyQualifiedName": record["id"], "kind": "member"}],
                    "physicalLocation": {
                        "artifactLocation": {"uri": f"litmus/corpus/{record['id'].split('@')[0]}.litmus"},
                        "region": {"startLine": 1},
                    },
                }],
            })
    rule = {"id": "violates", "shortDescription": {"text": "The device showed an outcome that the memory model forbids"}}
    driver = {"name": "vk-litmus", "rules": [rule]}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def escape_workflow_text(text, more=""):
    """Escapes a text as workflow commands require."""
    for char in "%\r\n" + more:
        text = text.replace(char, f"%{ord(char):02X}")
    return text


def annotate(path, status, where_found):
    """Prints the findings of a SARIF log, and an annotation for each."""
    with open(path, encoding="utf-8") as log:
        runs = json.load(log)["runs"]
    rows, count = [], 0
    kinds = {"error": "error", "warning": "warning"}
    for result in (result for run in runs for result in run["results"]):
        place = result["locations"][0]["physicalLocation"]
        file, line = place["artifactLocation"]["uri"], place.get("region", {}).get("startLine", 1)
        message = result["message"]["text"]
        where = f"file={escape_workflow_text(file, ':,')},line={line},title={escape_workflow_text(result['ruleId'], ':,')}"
        kind = kinds.get(result["level"], "notice")
        count += kind != "notice"
        print(f"::{kind} {where}::{escape_workflow_text(message)}", file=sys.stderr)
        cell = message.replace("|", "\\|").replace("\n", " ")
        rows.append(f"| `{file}:{line}` | {result['ruleId']} | {cell} |")
    print(f"## Shaders\n\n{count} findings in {where_found}.\n")
    if rows:
        print("| place | finding | message |\n|---|---|---|")
        print("\n".join(rows))
    if status not in ("0", "1"):
        print("\nNot everything has an answer: the log of the step names the reason.")


if __name__ == "__main__":
    if sys.argv[1] == "run":
        json.dump(violations_to_sarif(sys.argv[2]), sys.stdout, indent=1)
    else:
        annotate(*sys.argv[2:5])
