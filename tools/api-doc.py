#!/usr/bin/env python3
"""api-doc.py - writes docs/api.md out of the OpenAPI document of the daemon; --check says whether it is up to date."""
# SPDX-License-Identifier: MIT
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.join(ROOT, "src", "serve", "openapi.json")
TARGET = os.path.join(ROOT, "docs", "api.md")


def type_of(schema):
    """A schema in a word or two."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "oneOf" in schema:
        return " or ".join(type_of(one) for one in schema["oneOf"])
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"])
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return "list of " + type_of(schema.get("items", {}))
    return kind


def cell(text):
    return " ".join(str(text).split()).replace("|", "\\|")


def fields(schema):
    """The members of an object, one row each."""
    required = schema.get("required", [])
    rows = []
    for name, one in schema.get("properties", {}).items():
        must = "yes" if name in required else ""
        rows.append(f"| `{name}` | {cell(type_of(one))} | {must} | {cell(one.get('description', ''))} |")
    return ["| member | type | always | |", "|---|---|---|---|", *rows, ""] if rows else []


def body_lines(title, content):
    lines = []
    for media, one in content.items():
        schema = one.get("schema", {})
        lines += [f"{title}: `{media}`, {type_of(schema)}", "", *fields(schema)]
    return lines


def route_lines(method, path, route):
    lines = [f"### {method.upper()} {path}", "", cell(route["summary"]) + f" Role: {route.get('x-role', 'none')}.", ""]
    parameters = route.get("parameters", [])
    if parameters:
        lines += ["| parameter | in | type | |", "|---|---|---|---|"]
        lines += [f"| `{one['name']}` | {one['in']} | {cell(type_of(one.get('schema', {})))} | "
                  f"{cell(one.get('description', ''))} |" for one in parameters]
        lines.append("")
    lines += body_lines("Body", route.get("requestBody", {}).get("content", {}))
    for status, answer in route["responses"].items():
        if status == "default":
            continue
        lines += [f"{status}: {cell(answer.get('description', ''))}", ""]
        lines += body_lines("Answer", answer.get("content", {}))
    return lines


def document():
    with open(SOURCE, encoding="utf-8") as file:
        api = json.load(file)
    lines = ["# The HTTP API", "",
             "Made by `tools/api-doc.py` out of `src/serve/openapi.json`, which every daemon shows at `GET /openapi.json`.",
             "[serve.md](serve.md) explains it. Errors are [problem details](serve.md#errors).", ""]
    tags = []
    for operations in api["paths"].values():
        for route in operations.values():
            tags += [tag for tag in route["tags"] if tag not in tags]
    for tag in tags:
        lines += [f"## {tag.capitalize()}", ""]
        for path, operations in api["paths"].items():
            for method, route in operations.items():
                if route["tags"][0] == tag:
                    lines += route_lines(method, path, route)
    lines += ["## Objects", ""]
    for name, schema in api["components"]["schemas"].items():
        lines += [f"### {name}", "", *fields(schema)]
    return "\n".join(lines).rstrip("\n") + "\n"


def main():
    text = document()
    if "--check" not in sys.argv[1:]:
        with open(TARGET, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    with open(TARGET, encoding="utf-8") as file:
        if file.read() == text:
            return 0
    print("docs/api.md is not what the OpenAPI document says; run tools/api-doc.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
