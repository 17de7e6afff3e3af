//! What the machine did between two samples, put into the same rows as everything else: processor
//! time and time withheld, pressure, memory, paging, this process, the network, and the block
//! devices under databases and logs.
//!
//! Only in real time: a simulated run has no machine. What the kernel does not say gets no row.

#[cfg(test)]
mod tests;

use std::cell::RefCell;

use plimsoll_io::{BlockDevice, DeviceTotals, HostFiles, HostTotals, NANOS_PER_MILLISECOND, Nanos};
use serde::Serialize;

use crate::recorder::{Key, Recorder};
use crate::spec::RunSpec;

/// Rows of the log and of the databases of an instance.
const LOG_ROW: u32 = 0;
const DATABASE_ROW: u32 = 1;

/// Which block devices carry an instance.
#[derive(Clone, Debug, Serialize)]
pub struct InstanceDevices {
    /// The instance.
    pub instance: String,
    /// The disk under its databases.
    pub databases: Option<String>,
    /// The disk under its log.
    pub log: Option<String>,
}

struct Place {
    instance: u32,
    row: u32,
    device: BlockDevice,
    before: DeviceTotals,
}

struct Readings {
    totals: HostTotals,
    places: Vec<Place>,
}

/// See the module text.
pub struct HostWatch {
    files: HostFiles,
    /// Which of several threads this is, counted from 1. The first one watches the machine, the
    /// others themselves alone.
    thread: Option<u32>,
    before: RefCell<Readings>,
}

impl HostWatch {
    /// Begins to watch this machine and the devices under the instances of a run.
    pub fn start(spec: &RunSpec, thread: Option<u32>) -> HostWatch {
        let files = HostFiles::of_this_machine();
        let mut places = Vec::new();
        for (number, instance) in spec.instances.iter().enumerate() {
            let rows = [(LOG_ROW, &instance.log_directory), (DATABASE_ROW, &instance.directory)];
            for (row, directory) in rows {
                if let Some(device) = BlockDevice::under(directory) {
                    places.push(Place {
                        instance: number as u32,
                        row,
                        before: device.read().unwrap_or_default(),
                        device,
                    });
                }
            }
        }
        let totals = files.read();
        HostWatch { files, thread, before: RefCell::new(Readings { totals, places }) }
    }

    /// The devices, for the outcome.
    pub fn devices(&self, spec: &RunSpec) -> Vec<InstanceDevices> {
        let readings = self.before.borrow();
        let name = |number: usize, row: u32| {
            let mut places = readings.places.iter();
            let place = places.find(|place| place.instance as usize == number && place.row == row);
            place.map(|place| place.device.name.clone())
        };
        let each = spec.instances.iter().enumerate();
        each.map(|(number, instance)| InstanceDevices {
            instance: instance.name.clone(),
            databases: name(number, DATABASE_ROW),
            log: name(number, LOG_ROW),
        })
        .collect()
    }

    /// Notes what has changed since the last call, `interval_ns` ago.
    pub fn note(&self, recorder: &Recorder, interval_ns: Nanos) {
        let mut before = self.before.borrow_mut();
        let now = self.files.read();
        note_thread(recorder, self.thread, &before.totals, &now, interval_ns as f64);
        if self.thread.is_some_and(|thread| thread > 1) {
            before.totals = now;
            return;
        }
        note_machine(recorder, &before.totals, &now, interval_ns as f64);
        note_activity(recorder, &before.totals, &now, interval_ns as f64);
        before.totals = now;
        for place in &mut before.places {
            // A device that went away leaves its last figures: the I/O errors beside them tell
            // more.
            let Some(now) = place.device.read() else {
                continue;
            };
            note_device(
                recorder,
                (place.instance, place.row),
                &place.before,
                &now,
                interval_ns as f64,
            );
            place.before = now;
        }
    }
}

/// How long the thread itself waited for a processor.
fn note_thread(
    recorder: &Recorder,
    thread: Option<u32>,
    before: &HostTotals,
    now: &HostTotals,
    interval_ns: f64,
) {
    let (Some(before), Some(now)) = (before.thread_waited_ns, now.thread_waited_ns) else {
        return;
    };
    let share = now.saturating_sub(before) as f64 / interval_ns;
    recorder.set_level(Key::new(0, 0, "executor_wait"), share);
    if let Some(thread) = thread {
        recorder.set_level(Key::new(0, thread, "executor_wait"), share);
    }
}

fn note_machine(recorder: &Recorder, before: &HostTotals, now: &HostTotals, interval_ns: f64) {
    let set = |metric: &str, value: f64| recorder.set_level(Key::new(0, 0, metric), value);
    if let (Some(before), Some(now)) = (before.cpu, now.cpu) {
        // At least one tick: two samples can be closer together than the kernel counts.
        let total = now.total.saturating_sub(before.total).max(1) as f64;
        set("cpu_busy", now.busy.saturating_sub(before.busy) as f64 / total);
        set("cpu_stolen", now.stolen.saturating_sub(before.stolen) as f64 / total);
        set("cpu_user", now.user.saturating_sub(before.user) as f64 / total);
        set("cpu_kernel", now.kernel.saturating_sub(before.kernel) as f64 / total);
        set("cpu_waiting", now.waiting.saturating_sub(before.waiting) as f64 / total);
    }
    let share_ns = |before: Option<u64>, now: Option<u64>| {
        Some(now?.saturating_sub(before?) as f64 / interval_ns)
    };
    if let Some(share) = share_ns(before.throttled_ns, now.throttled_ns) {
        set("cpu_throttled", share);
    }
    if let (Some(before), Some(now)) = (before.pressure, now.pressure) {
        let share_us = |before: u64, now: u64| share_of_us(now.saturating_sub(before), interval_ns);
        set("pressure_io_some", share_us(before.io_some_us, now.io_some_us));
        set("pressure_io_full", share_us(before.io_full_us, now.io_full_us));
        set("pressure_cpu_some", share_us(before.cpu_some_us, now.cpu_some_us));
        set("pressure_memory_some", share_us(before.memory_some_us, now.memory_some_us));
        set("pressure_memory_full", share_us(before.memory_full_us, now.memory_full_us));
    }
}

/// A part of an interval. The kernel's totals and our clock are not read at the same moment, so
/// that it can come out a little above the whole, which it is then.
fn share_of_us(part_us: u64, interval_ns: f64) -> f64 {
    (part_us as f64 * 1000.0 / interval_ns).min(1.0)
}

/// What the published tools sampled beside it.
fn note_activity(recorder: &Recorder, before: &HostTotals, now: &HostTotals, interval_ns: f64) {
    let set = |metric: &str, value: u64| recorder.set_level(Key::new(0, 0, metric), value as f64);
    if let Some(memory) = now.memory {
        set("memory_available", memory.available_bytes);
        set("memory_used", memory.used_bytes);
        set("memory_cached", memory.cached_bytes);
        set("memory_committed", memory.committed_bytes);
        set("kernel_memory_fixed", memory.kernel_fixed_bytes);
        set("kernel_memory_reclaimable", memory.kernel_reclaimable_bytes);
        set("kernel_mappings_free", memory.mappings_free_bytes);
    }
    let grown = |before: u64, now: u64| now.saturating_sub(before);
    if let (Some(before), Some(now)) = (before.system, now.system) {
        set("interrupts", grown(before.interrupts, now.interrupts));
        set("context_switches", grown(before.context_switches, now.context_switches));
        set("tasks_running", now.tasks_running);
        set("tasks_blocked", now.tasks_blocked);
    }
    if let (Some(before), Some(now)) = (before.paging, now.paging) {
        set("page_faults", grown(before.page_faults, now.page_faults));
        set("major_page_faults", grown(before.major_page_faults, now.major_page_faults));
        set("pages_repurposed", grown(before.repurposed, now.repurposed));
        set("pages_swapped", grown(before.swapped, now.swapped));
    }
    if let (Some(before), Some(now)) = (before.process, now.process) {
        let share = grown(before.cpu_ns, now.cpu_ns) as f64 / interval_ns;
        recorder.set_level(Key::new(0, 0, "process_cpu"), share);
        set("process_memory", now.resident_bytes);
        set("process_threads", now.threads);
    }
    if let (Some(before), Some(now)) = (before.network, now.network) {
        set("network_received", grown(before.received_bytes, now.received_bytes));
        set("network_sent", grown(before.sent_bytes, now.sent_bytes));
    }
}

fn note_device(
    recorder: &Recorder,
    (instance, row): (u32, u32),
    before: &DeviceTotals,
    now: &DeviceTotals,
    interval_ns: f64,
) {
    let set = |metric: &str, value: f64| recorder.set_level(Key::new(instance, row, metric), value);
    let grown = |before: u64, now: u64| now.saturating_sub(before) as f64;
    let grown_ns = |before: u64, now: u64| grown(before, now) * NANOS_PER_MILLISECOND as f64;
    set("device_reads", grown(before.reads, now.reads));
    set("device_read_bytes", grown(before.read_bytes, now.read_bytes));
    set("device_read_time", grown_ns(before.read_ms, now.read_ms));
    set("device_writes", grown(before.writes, now.writes));
    set("device_write_bytes", grown(before.write_bytes, now.write_bytes));
    set("device_write_time", grown_ns(before.write_ms, now.write_ms));
    if let (Some(before), Some(now)) = (before.flushes, now.flushes) {
        set("device_flushes", grown(before, now));
    }
    if let (Some(before), Some(now)) = (before.flush_ms, now.flush_ms) {
        set("device_flush_time", grown_ns(before, now));
    }
    set("device_busy", grown_ns(before.busy_ms, now.busy_ms) / interval_ns);
    set("device_queue", grown_ns(before.queued_ms, now.queued_ms) / interval_ns);
    set("device_in_flight", now.in_flight as f64);
}
