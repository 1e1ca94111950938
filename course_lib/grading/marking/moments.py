"""Dates as people and programs write them; what could be meant in two ways is not read."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

WRITTEN = re.compile(
    r"(?:(?P<year>\d{4})-(?P<month>\d\d?)-(?P<day>\d\d?)"
    r"|(?P<day_first>\d\d?)\. ?(?P<month_next>\d\d?)\. ?(?P<year_last>\d{4}))"
    r"(?:(?:T|,? +)(?P<hour>\d\d?)[:.](?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d+)?)?)?"
    r" ?(?P<zone>Z|[+-]\d\d:?\d\d|(?(second)(?<= )[+-]\d\d|(?!))|[A-Za-z][A-Za-z_/+-]+\d*)?"
)


def moment(text: str, end_of_day: bool = False) -> datetime | None:
    """The time that a text names, in UTC without a zone, as nbgrader keeps it; None where it names none for certain.

    Parameters
    ----------
    text : `2026-12-01 18:00+01:00` or, with the day first, `01.12.2026 18:00 Europe/Berlin`. Without a zone it is in
        UTC. `12/01/2026` is January in London and December in New York, and is not read.
    end_of_day : a day without an hour is meant to its end; otherwise from its beginning
    """
    found = WRITTEN.fullmatch(text.strip())
    if not found:
        return None
    year, month, day = (int(found[a] or found[b]) for a, b in
                        (("year", "year_last"), ("month", "month_next"), ("day", "day_first")))  # fmt: skip
    try:
        time = datetime(year, month, day, *(int(found[part] or 0) for part in ("hour", "minute", "second")))
        if end_of_day and found["hour"] is None:
            time += timedelta(hours=23, minutes=59, seconds=59)
        time = time.replace(tzinfo=_zone(found["zone"])).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError, KeyError):  # no such day, or no such zone
        return None
    return time if 1990 < time.year < 2200 else None


def _zone(name: str | None):
    if name in (None, "Z", "UTC", "GMT"):
        return UTC
    if name[0] in "+-":
        return datetime.strptime(name if len(name) > 3 else f"{name}00", "%z").tzinfo
    return ZoneInfo(name)
