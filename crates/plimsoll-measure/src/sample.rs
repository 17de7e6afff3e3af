//! The column dictionary: what a sample is made of. Every other place that lists columns reads this
//! one.
//!
//! A sample is one row: over one interval, for one instance and database, one metric. Rows of a
//! metric are present in every interval, also when nothing happened, because some published
//! statistics are means over samples with the empty ones counted. Codes are positions in
//! [`METRICS`]; names, not codes, are stored in files.

/// The type of a column's values, all little-endian and eight bytes wide or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Unsigned 64-bit.
    U64,
    /// Unsigned 32-bit.
    U32,
    /// 64-bit float.
    F64,
}

impl ColumnType {
    /// The name numpy uses.
    pub fn name(self) -> &'static str {
        match self {
            ColumnType::U64 => "uint64",
            ColumnType::U32 => "uint32",
            ColumnType::F64 => "float64",
        }
    }
}

/// One column of a sample table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name, unit last.
    pub name: &'static str,
    /// Unit, or "code" and "count".
    pub unit: &'static str,
    /// Type of its values.
    pub kind: ColumnType,
    /// What it says.
    pub meaning: &'static str,
}

const fn column(
    name: &'static str,
    unit: &'static str,
    kind: ColumnType,
    meaning: &'static str,
) -> Column {
    Column { name, unit, kind, meaning }
}

/// The columns, in the order in which buffers are handed over.
pub const COLUMNS: [Column; 16] = [
    column("end_ns", "ns", ColumnType::U64, "end of the interval on the run's monotonic clock"),
    column("interval_ns", "ns", ColumnType::U64, "length of the interval"),
    column("phase", "code", ColumnType::U32, "position of the phase in the plan"),
    column("host", "code", ColumnType::U32, "position of the host in the plan"),
    column("instance", "code", ColumnType::U32, "position of the instance in the plan"),
    column(
        "database",
        "code",
        ColumnType::U32,
        "database of the instance, counted from 1; 0 for the log and the instance as a whole",
    ),
    column(
        "workload",
        "code",
        ColumnType::U32,
        "position of the workload in the plan, counted from 1; 0 where none is meant",
    ),
    column("metric", "code", ColumnType::U32, "what was measured: position in the list of metrics"),
    column("count", "count", ColumnType::U64, "events completed in the interval"),
    column(
        "errors",
        "count",
        ColumnType::U64,
        "events that failed; not part of count, bytes or latencies",
    ),
    column("bytes", "byte", ColumnType::U64, "bytes transferred"),
    column(
        "latency_ns_sum",
        "ns",
        ColumnType::U64,
        "sum of the latencies; divide by count for the mean",
    ),
    column("latency_ns_max", "ns", ColumnType::U64, "longest latency"),
    column("latency_ns_p50", "ns", ColumnType::U64, "median latency"),
    column("latency_ns_p99", "ns", ColumnType::U64, "99th percentile of latency"),
    column(
        "value",
        "see metric",
        ColumnType::F64,
        "a level or a total at the end of the interval, in the metric's unit",
    ),
];

/// Which columns of a row a metric fills; the others are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// count, errors, bytes and the latencies.
    Transfer,
    /// count, errors and the latencies.
    Timing,
    /// count.
    Counter,
    /// value.
    Level,
}

impl MetricKind {
    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            MetricKind::Transfer => "transfer",
            MetricKind::Timing => "timing",
            MetricKind::Counter => "counter",
            MetricKind::Level => "level",
        }
    }
}

/// One thing that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name, used in files and reports.
    pub name: &'static str,
    /// Which columns it fills.
    pub kind: MetricKind,
    /// Unit of `value` for levels, of the latencies otherwise.
    pub unit: &'static str,
    /// What it says.
    pub meaning: &'static str,
}

/// A metric by its name, its kind, its unit and what it says.
pub const fn metric(
    name: &'static str,
    kind: MetricKind,
    unit: &'static str,
    meaning: &'static str,
) -> Metric {
    Metric { name, kind, unit, meaning }
}

/// Everything that is measured. The first entries are the purposes of I/O in the order of the disk
/// seam, timed from submission to the reaping of the completion.
pub const METRICS: [Metric; 89] = [
    metric("database_read", MetricKind::Transfer, "ns", "database pages read for transactions"),
    metric(
        "database_write",
        MetricKind::Transfer,
        "ns",
        "database pages written back by the cache",
    ),
    metric("maintenance", MetricKind::Transfer, "ns", "background database maintenance"),
    metric("log_write", MetricKind::Transfer, "ns", "log flushes"),
    metric("log_format", MetricKind::Transfer, "ns", "log generations written in advance"),
    metric("log_read", MetricKind::Transfer, "ns", "log read for recovery or verification"),
    metric("log_replication", MetricKind::Transfer, "ns", "log read back for further copies"),
    metric("redo", MetricKind::Transfer, "ns", "database pages read by recovery"),
    metric("redo_write", MetricKind::Transfer, "ns", "database pages written by recovery"),
    metric("backup", MetricKind::Transfer, "ns", "streaming backup reads"),
    metric("backup_write", MetricKind::Transfer, "ns", "pages and log written to kept backups"),
    metric("checksum", MetricKind::Transfer, "ns", "reads that verify page checksums"),
    metric("prepare", MetricKind::Transfer, "ns", "writes that prepare a database"),
    metric("header", MetricKind::Transfer, "ns", "headers, checkpoint and flush map"),
    metric(
        "metadata",
        MetricKind::Transfer,
        "ns",
        "creating, renaming, deleting and opening files",
    ),
    metric("sync", MetricKind::Timing, "ns", "syncs of files and directories"),
    metric(
        "insert",
        MetricKind::Timing,
        "ns",
        "insert transactions, from the intended start to the end of the commit",
    ),
    metric("delete", MetricKind::Timing, "ns", "delete transactions, likewise"),
    metric("replace", MetricKind::Timing, "ns", "replace transactions, likewise"),
    metric("read", MetricKind::Timing, "ns", "read transactions, likewise"),
    metric(
        "reap_gap",
        MetricKind::Timing,
        "ns",
        "time between two looks at the disk's completions",
    ),
    metric(
        "arrival_lag",
        MetricKind::Timing,
        "ns",
        "how late the load generator itself was with an arrival that no full pool held up",
    ),
    metric(
        "pool_wait",
        MetricKind::Timing,
        "ns",
        "time an arrival waited because every session was busy",
    ),
    metric(
        "missing_record",
        MetricKind::Counter,
        "count",
        "operations that met a record deleted before",
    ),
    metric(
        "write_conflict",
        MetricKind::Counter,
        "count",
        "operations given up because another session held the record",
    ),
    metric(
        "page_fault_stall",
        MetricKind::Counter,
        "count",
        "page faults that found no free buffer",
    ),
    metric(
        "hung",
        MetricKind::Counter,
        "count",
        "transfers in flight for longer than the stated limit, counted once each",
    ),
    metric(
        "in_flight",
        MetricKind::Level,
        "count",
        "operations of the instance at the disk at the end of the interval",
    ),
    metric("cache_used", MetricKind::Level, "byte", "cache in use"),
    metric("cache_limit", MetricKind::Level, "byte", "most the cache may use"),
    metric("database_size", MetricKind::Level, "byte", "length of the database file"),
    metric("log_generation", MetricKind::Level, "count", "number of the current log generation"),
    metric("log_space", MetricKind::Level, "byte", "generations of the log that are on the disk"),
    metric("log_lagged", MetricKind::Level, "byte", "log that the most lagged copy needs"),
    metric(
        "executor_busy",
        MetricKind::Level,
        "ratio",
        "share of the interval the load generator's thread was on a processor or waited for one",
    ),
    metric("sessions", MetricKind::Level, "count", "sessions under load"),
    metric(
        "offered_rate",
        MetricKind::Level,
        "1/s",
        "transactions that arrive per second, where they have a schedule",
    ),
    metric(
        "log_flush_wait",
        MetricKind::Timing,
        "ns",
        "what transactions waited for their commit, that is for the log; lazy commits as short as \
         they are",
    ),
    metric(
        "handing_over",
        MetricKind::Level,
        "ns",
        "time between asking for I/O and handing it to the kernel, added up over the interval: \
         page reads of the database, log flushes in the row of the log",
    ),
    metric(
        "executor_wait",
        MetricKind::Level,
        "ratio",
        "share of the interval the load generator's thread was ready and had no processor",
    ),
    metric("cpu_busy", MetricKind::Level, "ratio", "share of the machine's processor time in use"),
    metric(
        "cpu_stolen",
        MetricKind::Level,
        "ratio",
        "share of the machine's processor time taken by the hypervisor",
    ),
    metric(
        "cpu_throttled",
        MetricKind::Level,
        "ratio",
        "time a quota of a control group kept this process from its processors, by the interval; \
         each processor counts, so it can exceed 1",
    ),
    metric("memory_available", MetricKind::Level, "byte", "memory that could be given to programs"),
    metric(
        "pressure_io_some",
        MetricKind::Level,
        "ratio",
        "share of the interval in which some task of the machine waited for I/O",
    ),
    metric(
        "pressure_io_full",
        MetricKind::Level,
        "ratio",
        "share of the interval in which every task that was not idle waited for I/O",
    ),
    metric(
        "pressure_cpu_some",
        MetricKind::Level,
        "ratio",
        "share of the interval in which some task waited for a processor",
    ),
    metric(
        "pressure_memory_some",
        MetricKind::Level,
        "ratio",
        "share of the interval in which some task waited for memory",
    ),
    metric(
        "pressure_memory_full",
        MetricKind::Level,
        "ratio",
        "share of the interval in which every task that was not idle waited for memory",
    ),
    metric(
        "device_reads",
        MetricKind::Level,
        "count",
        "reads the block device completed in the interval, whichever process asked; this and the \
         rest of \
         device: in the row of database 1 the disk under the databases, in the row of database 0 \
         the disk under the log",
    ),
    metric("device_read_bytes", MetricKind::Level, "byte", "bytes read from it in the interval"),
    metric(
        "device_read_time",
        MetricKind::Level,
        "ns",
        "time those reads took in the block layer, added up",
    ),
    metric(
        "device_writes",
        MetricKind::Level,
        "count",
        "writes the block device completed in the interval",
    ),
    metric("device_write_bytes", MetricKind::Level, "byte", "bytes written to it in the interval"),
    metric(
        "device_write_time",
        MetricKind::Level,
        "ns",
        "time those writes took in the block layer, added up",
    ),
    metric(
        "device_flushes",
        MetricKind::Level,
        "count",
        "cache flushes the block device completed in the interval",
    ),
    metric("device_flush_time", MetricKind::Level, "ns", "time those flushes took, added up"),
    metric(
        "device_busy",
        MetricKind::Level,
        "ratio",
        "share of the interval in which the block device had anything in flight",
    ),
    metric(
        "device_queue",
        MetricKind::Level,
        "count",
        "requests in flight at the block device, averaged over the interval",
    ),
    metric(
        "cpu_user",
        MetricKind::Level,
        "ratio",
        "share of the machine's processor time used by programs",
    ),
    metric(
        "cpu_kernel",
        MetricKind::Level,
        "ratio",
        "share of the machine's processor time used by the kernel, interrupts included",
    ),
    metric(
        "cpu_waiting",
        MetricKind::Level,
        "ratio",
        "share of the machine's processor time idle while some task waited for I/O",
    ),
    metric("interrupts", MetricKind::Level, "count", "interrupts served in the interval"),
    metric(
        "context_switches",
        MetricKind::Level,
        "count",
        "changes from one task to another in the interval",
    ),
    metric(
        "tasks_running",
        MetricKind::Level,
        "count",
        "tasks that ran or could have, at the end of the interval",
    ),
    metric(
        "tasks_blocked",
        MetricKind::Level,
        "count",
        "tasks that waited for I/O, at the end of the interval",
    ),
    metric(
        "process_cpu",
        MetricKind::Level,
        "ratio",
        "processor time of this process by the interval; each processor counts, so it can exceed 1",
    ),
    metric("process_memory", MetricKind::Level, "byte", "memory this process holds"),
    metric("process_threads", MetricKind::Level, "count", "threads of this process"),
    metric("memory_used", MetricKind::Level, "byte", "memory that could not be given to programs"),
    metric("memory_cached", MetricKind::Level, "byte", "content of files in memory"),
    metric("memory_committed", MetricKind::Level, "byte", "memory that programs were promised"),
    metric(
        "kernel_memory_fixed",
        MetricKind::Level,
        "byte",
        "the kernel's own objects that must stay in memory",
    ),
    metric(
        "kernel_memory_reclaimable",
        MetricKind::Level,
        "byte",
        "the kernel's own objects that can be given up",
    ),
    metric(
        "kernel_mappings_free",
        MetricKind::Level,
        "byte",
        "address space of the kernel that is not mapped",
    ),
    metric(
        "pages_repurposed",
        MetricKind::Level,
        "count",
        "pages that held something and were taken for something else in the interval",
    ),
    metric("page_faults", MetricKind::Level, "count", "page faults of the machine in the interval"),
    metric(
        "major_page_faults",
        MetricKind::Level,
        "count",
        "page faults that had to read, in the interval",
    ),
    metric(
        "pages_swapped",
        MetricKind::Level,
        "count",
        "pages read from and written to swap in the interval",
    ),
    metric(
        "network_received",
        MetricKind::Level,
        "byte",
        "bytes received by all network adapters but the loopback in the interval",
    ),
    metric("network_sent", MetricKind::Level, "byte", "bytes sent likewise"),
    metric(
        "device_in_flight",
        MetricKind::Level,
        "count",
        "requests in flight at the block device at the end of the interval",
    ),
    metric(
        "hot_operation",
        MetricKind::Counter,
        "count",
        "operations on a record of the hot set, of those on records that were there",
    ),
    metric(
        "corrected_page",
        MetricKind::Counter,
        "count",
        "pages read with one flipped bit, which their checksum put right",
    ),
    metric(
        "clock_gap",
        MetricKind::Timing,
        "ns",
        "time the run did not go on though nothing of its own held it: the process was stopped, or \
         the machine paused",
    ),
    metric(
        "endpoint_sessions",
        MetricKind::Level,
        "count",
        "connections that are open to an endpoint of a server that has several",
    ),
    metric(
        "endpoint_connections",
        MetricKind::Counter,
        "count",
        "connections to it that came about",
    ),
    metric(
        "endpoint_refused",
        MetricKind::Counter,
        "count",
        "attempts at connecting to it that came to nothing",
    ),
    metric(
        "endpoint_moved",
        MetricKind::Counter,
        "count",
        "connections to it of clients that were at another endpoint before",
    ),
];

/// The position of a metric in [`METRICS`].
pub fn metric_code(name: &str) -> Option<u32> {
    METRICS.iter().position(|metric| metric.name == name).map(|position| position as u32)
}
