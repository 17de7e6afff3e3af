//! What the array itself counts, as a storage administrator sees it: by volume and by member. Both
//! add up to what the hosts count.

// Circle: what the array completes is what its counters count.
use super::Completed;

/// Requests, bytes and times of one direction each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Reads completed.
    pub read_count: u64,
    /// Writes completed.
    pub write_count: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Sum of the latencies of reads.
    pub read_latency_ns: u64,
    /// Sum of the latencies of writes.
    pub write_latency_ns: u64,
    /// Requests whose data was lost; they are in no other count.
    pub lost_count: u64,
}

impl IoCounters {
    /// Counts a completed request.
    pub fn count(&mut self, completed: &Completed) {
        if completed.is_lost {
            self.lost_count += 1;
            return;
        }
        let latency_ns = completed.completed - completed.submitted;
        let bytes = u64::from(completed.request.bytes);
        if completed.request.is_write {
            self.write_count += 1;
            self.write_bytes += bytes;
            self.write_latency_ns += latency_ns;
        } else {
            self.read_count += 1;
            self.read_bytes += bytes;
            self.read_latency_ns += latency_ns;
        }
    }
}

/// What one box counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberCounters {
    /// Host requests.
    pub host: IoCounters,
    /// Reads answered from memory: just written, dirty, or read ahead.
    pub read_hit_count: u64,
    /// Writes that waited for room in the cache.
    pub write_stall_count: u64,
    /// Rows that went to the drives.
    pub destaged_row_count: u64,
    /// Of these, rows written whole.
    pub full_stripe_count: u64,
}
