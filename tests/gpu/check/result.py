"""What a check hands back: tables for people, failures, notes. One shape for all, so that printing and rendering need to know
nothing about any of them."""


class Result:
    def __init__(self):
        self.tables, self.failures, self.notes, self.charts = [], [], [], {}

    def table(self, title, columns):
        """Adds an empty table; rows are appended to what is returned."""
        self.tables.append({"title": title, "columns": list(columns), "rows": []})
        return self.tables[-1]["rows"]

    def chart(self, name, title, unit, bars):
        """A picture NAME.svg beside the page: bars of (name, value, whether it is ours)."""
        self.charts[name] = {"title": title, "unit": unit, "bars": bars}

    def expect(self, holds, failure):
        if not holds:
            self.failures.append(failure)
        return holds

    def note(self, text):
        self.notes.append(text)

    def as_json(self, seconds):
        return {"passed": not self.failures, "seconds": round(seconds, 1), "failures": self.failures, "notes": self.notes,
                "tables": self.tables, "charts": self.charts}


def markdown(table):
    """A table in the form of the documents."""
    rows = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    lines = ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([f"{table['title']}:", "", *lines, ""])
