"""The words of a Jetstress report.

Its sections, labels and columns, each with the name it has here.

One table serves both directions: a report is read by it, and the appendices of a solution document
are written by it, so that what was written can be read again. Source: the reports of builds 14.01
and 15.00 as the EMC VNXe3300 and SanDisk papers print them. Names are those of the published
results in machine-readable form; the unit is the end of the name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: What a value is, and so how its text is read and written.
TEXT, TIME, FILE, WHOLE, DECIMAL, PERCENT, MEGABYTES, FLAG, CLOCK, EXACT = (
    "text",
    "time",
    "file",
    "whole",
    "decimal",
    "percent",
    "megabytes",
    "flag",
    "clock",
    "exact",
)


@dataclass(frozen=True)
class Label:
    """A labelled value, or a column of a table."""

    name: str
    label: str
    kind: str = DECIMAL


def bare(text: str) -> str:
    """A label without what editors and programs change about it: case, blanks, dots, hyphens.

    >>> bare("Wrong page-number pages") == bare("Wrong Page Number Pages")
    True
    """
    return re.sub(r"[^a-z0-9%]", "", text.lower())


TEST_SUMMARY = (
    Label("overall_result", "Overall Test Result", TEXT),
    Label("machine_name", "Machine Name", TEXT),
    Label("description", "Test Description", TEXT),
    Label("test_start", "Test Start Time", TIME),
    Label("test_end", "Test End Time", TIME),
    Label("collection_start", "Collection Start Time", TIME),
    Label("collection_end", "Collection End Time", TIME),
    Label("jetstress_version", "Jetstress Version", TEXT),
    Label("ese_version", "ESE Version", TEXT),
    Label("operating_system", "Operating System", TEXT),
    Label("performance_log", "Performance Log", FILE),
)
SIZING = (
    Label("achieved_transactional_iops", "Achieved Transactional I/O per Second"),
    Label("target_transactional_iops", "Target Transactional I/O per Second"),
    Label("capacity_percentage_pct", "Capacity Percentage", PERCENT),
    Label("throughput_percentage_pct", "Throughput Percentage", PERCENT),
    Label("initial_database_size_bytes", "Initial Database Size (bytes)", WHOLE),
    Label("final_database_size_bytes", "Final Database Size (bytes)", WHOLE),
    Label("database_files_count", "Database Files (Count)", WHOLE),
)
PARAMETERS = (
    Label("thread_count_per_database", "Thread Count (per database)", WHOLE),
    Label("thread_count", "Thread Count", WHOLE),
    Label("minimum_database_cache_mb", "Minimum Database Cache", MEGABYTES),
    Label("maximum_database_cache_mb", "Maximum Database Cache", MEGABYTES),
    Label("insert_operations_pct", "Insert Operations", PERCENT),
    Label("delete_operations_pct", "Delete Operations", PERCENT),
    Label("replace_operations_pct", "Replace Operations", PERCENT),
    Label("read_operations_pct", "Read Operations", PERCENT),
    Label("lazy_commits_pct", "Lazy Commits", PERCENT),
    Label("run_background_database_maintenance", "Run Background Database Maintenance", FLAG),
    Label("copies_per_database", "Number of Copies per Database", WHOLE),
)
IO_COLUMNS = (
    Label("db_read_avg_latency_ms", "I/O Database Reads Average Latency (msec)"),
    Label("db_write_avg_latency_ms", "I/O Database Writes Average Latency (msec)"),
    Label("db_reads_per_sec", "I/O Database Reads/sec"),
    Label("db_writes_per_sec", "I/O Database Writes/sec"),
    Label("db_read_avg_bytes", "I/O Database Reads Average Bytes"),
    Label("db_write_avg_bytes", "I/O Database Writes Average Bytes"),
    Label("log_read_avg_latency_ms", "I/O Log Reads Average Latency (msec)"),
    Label("log_write_avg_latency_ms", "I/O Log Writes Average Latency (msec)"),
    Label("log_reads_per_sec", "I/O Log Reads/sec"),
    Label("log_writes_per_sec", "I/O Log Writes/sec"),
    Label("log_read_avg_bytes", "I/O Log Reads Average Bytes"),
    Label("log_write_avg_bytes", "I/O Log Writes Average Bytes"),
)
MAINTENANCE_COLUMNS = (
    Label("bdm_reads_per_sec", "Database Maintenance IO Reads/sec"),
    Label("bdm_read_avg_bytes", "Database Maintenance IO Reads Average Bytes"),
)
REPLICATION_COLUMNS = (
    Label("log_replication_reads_per_sec", "I/O Log Reads/sec"),
    Label("log_replication_read_avg_bytes", "I/O Log Reads Average Bytes"),
)
COUNTERS = (
    Label("processor_time_pct", "% Processor Time"),
    Label("available_mbytes", "Available MBytes"),
    Label("free_system_page_table_entries", "Free System Page Table Entries"),
    Label("transition_pages_repurposed_per_sec", "Transition Pages RePurposed/sec"),
    Label("pool_nonpaged_bytes", "Pool Nonpaged Bytes"),
    Label("pool_paged_bytes", "Pool Paged Bytes"),
    Label("database_page_fault_stalls_per_sec", "Database Page Fault Stalls/sec"),
)
LEVEL_COLUMNS = (
    Label("average", "Average"),
    Label("minimum", "Minimum"),
    Label("maximum", "Maximum"),
)
CHECKSUM_COLUMNS = (
    Label("seen_pages", "Seen pages", WHOLE),
    Label("bad_pages", "Bad pages", WHOLE),
    Label("correctable_pages", "Correctable pages", WHOLE),
    Label("wrong_page_number_pages", "Wrong page-number pages", WHOLE),
    Label("file_length_mb/elapsed_s", "File length / seconds taken", TEXT),
)
DISK_COLUMNS = (
    Label("avg_disk_sec_per_read_s", "Avg. Disk sec/Read"),
    Label("avg_disk_sec_per_write_s", "Avg. Disk sec/Write"),
    Label("disk_reads_per_sec", "Disk Reads/sec"),
    Label("disk_writes_per_sec", "Disk Writes/sec"),
    Label("avg_disk_bytes_per_read", "Avg. Disk Bytes/Read"),
)
BACKUP_COLUMNS = (
    Label("database_size_mb", "Database Size (MBytes)", EXACT),
    Label("elapsed_hms", "Elapsed Backup Time", CLOCK),
    Label("mb_transferred_per_sec", "MBytes Transferred/sec", EXACT),
)
RECOVERY_COLUMNS = (
    Label("log_files_replayed", "Log files replayed", WHOLE),
    Label("elapsed_s", "Elapsed seconds", EXACT),
)

#: Parts of a report with its title, further names they go by (also in XML), and their shape.
PAIRS, ROWS, LEVELS, PLACES, LOG = "pairs", "rows", "levels", "places", "log"


@dataclass(frozen=True)
class Part:
    """A part of a report."""

    name: str
    title: str
    shape: str
    labels: tuple[Label, ...] = ()
    other_titles: tuple[str, ...] = ()
    #: What the first column is headed by.
    first: str = "MSExchange Database ==> Instances"


PARTS = (
    Part(
        "backup",
        "Database Backup Statistics - All",
        ROWS,
        BACKUP_COLUMNS,
        ("Database Backup Statistics", "backup-statistics"),
        "Database Instance",
    ),
    Part(
        "recovery",
        "Soft-Recovery Statistics - All",
        ROWS,
        RECOVERY_COLUMNS,
        ("Soft Recovery Statistics", "recovery-statistics"),
        "Database Instance",
    ),
    Part("summary", "Test Summary", PAIRS, TEST_SUMMARY, ("test-summary",)),
    Part("issues", "Test Issues", LOG, (), ("test-issues", "Issues")),
    Part("sizing", "Database Sizing and Throughput", PAIRS, SIZING, ("database-sizing",)),
    Part("parameters", "Jetstress System Parameters", PAIRS, PARAMETERS, ("jetstress-system",)),
    Part("configuration", "Database Configuration", PLACES, (), ("database-configuration",)),
    Part(
        "transactional_io",
        "Transactional I/O Performance",
        ROWS,
        IO_COLUMNS,
        (
            "disk-subsystem",
            "disk-subsystem-transactional",
            "Disk Subsystem Performance of Transactions",
        ),
    ),
    Part(
        "background_database_maintenance_io",
        "Background Database Maintenance I/O Performance",
        ROWS,
        MAINTENANCE_COLUMNS,
        ("disk-subsystem-of-dbmaintenance",),
    ),
    Part(
        "log_replication_io",
        "Log Replication I/O Performance",
        ROWS,
        REPLICATION_COLUMNS,
        ("disk-subsystem-of-logreplication",),
    ),
    Part("total_io", "Total I/O Performance", ROWS, IO_COLUMNS, ("disk-subsystem-total",)),
    Part(
        "host",
        "Host System Performance",
        LEVELS,
        COUNTERS,
        ("host-system", "memory-system"),
        "Counter",
    ),
    Part(
        "checksum",
        "Checksum Statistics - All",
        ROWS,
        CHECKSUM_COLUMNS,
        ("Checksum Statistics", "checksum-statistics"),
        "Database",
    ),
    Part(
        "checksum_disks",
        "Disk Subsystem Performance (of checksum)",
        ROWS,
        DISK_COLUMNS,
        ("disk-subsystem-of-checksum",),
        "LogicalDisk",
    ),
    Part(
        "checksum_host",
        "Memory System Performance (of checksum)",
        LEVELS,
        COUNTERS,
        ("memory-system-of-checksum",),
        "Counter",
    ),
    Part("log", "Test Log", LOG, (), ("test-log",)),
)
PART_OF = {bare(title): part for part in PARTS for title in (part.title, *part.other_titles)}
PART_NAMED = {part.name: part for part in PARTS}
