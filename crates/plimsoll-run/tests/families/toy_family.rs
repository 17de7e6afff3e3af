//! A workload family from outside the crate runs end to end in virtual time: what a family is, is
//! said in one place, and no list elsewhere has to learn of it.
//!
//! The family appends blocks to one file and reads them back. Its service refuses every tenth
//! append, which is counted and ends nothing.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc::channel;

use crate::support::{constant, rate, spec};
use plimsoll_io::{Context, Durability, File, Nanos, OpenMode, Purpose, Random};
use plimsoll_measure::{METRICS, Metric, MetricKind};
use plimsoll_run::{
    Backend, Book, DatabaseState, Ending, Families, Family, InstanceSpec, Label, LoadStart, Output,
    Pair, RunContext, RunError, RunOutcome, RunSpec, RunningLoad, Service, StopSignal, Work,
    WorkloadSpec, execute_for, only,
};
use plimsoll_workload::{Demand, Done, Seen, Timed};
use schemars::{Schema, json_schema};
use serde_json::{Value, json};

const BLOCK_BYTES: u64 = 4096;
const REFUSED: u32 = 552;

const fn timing(name: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Timing, unit: "ns", meaning: "of the toy" }
}

const OURS: [Metric; 4] =
    [timing("append"), timing("look_back"), timing("append_sync"), timing("append_refused")];

/// One file, open.
struct Tape {
    file: File,
    path: std::path::PathBuf,
    blocks: Cell<u64>,
}

impl Backend for Tape {
    fn databases(&self) -> Vec<DatabaseState> {
        vec![DatabaseState {
            path: self.path.clone(),
            size_bytes: self.blocks.get() * BLOCK_BYTES,
            records_ever: self.blocks.get(),
            commits_at_risk: Vec::new(),
        }]
    }

    fn close(self: Rc<Self>) -> Work<'static, Result<(), RunError>> {
        Box::pin(async move { Ok(only(self).file.close(Context::of(Purpose::Header)).await?) })
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

#[derive(Clone, Copy)]
enum ToyTask {
    Append { is_refused: bool },
    LookBack,
}

/// Appends, and looks back after every third append.
struct ToyDemand {
    asked: u64,
    think_ns: Nanos,
}

impl Demand for ToyDemand {
    type Task = ToyTask;

    fn next(&mut self, now: Nanos, seen: Option<Seen<'_, ToyTask>>) -> Option<Timed<ToyTask>> {
        self.asked += 1;
        let task = match self.asked.is_multiple_of(4) {
            true => ToyTask::LookBack,
            false => ToyTask::Append { is_refused: self.asked % 10 == 1 },
        };
        let intended = seen.map_or(now, |seen| seen.finished + self.think_ns);
        Some(Timed { intended, task })
    }
}

struct ToyService {
    run: RunContext,
    tape: Rc<Tape>,
}

impl Service for ToyService {
    type Task = ToyTask;

    async fn execute(&self, task: &ToyTask, book: &mut Book) -> Result<Done, RunError> {
        let file = &self.tape.file;
        match task {
            ToyTask::Append { is_refused: true } => return Ok(Done::Refused(REFUSED)),
            ToyTask::Append { .. } => {
                let block = self.tape.blocks.replace(self.tape.blocks.get() + 1);
                let buffer = file.allocate(BLOCK_BYTES as usize);
                let context = Context::of(Purpose::DatabaseWrite);
                file.write(block * BLOCK_BYTES, buffer, Durability::Volatile, context).await?;
                let begun = self.run.handle.now();
                file.sync(context).await?;
                book.note("append_sync", self.run.handle.now() - begun);
            }
            ToyTask::LookBack => {
                let buffer = file.allocate(BLOCK_BYTES as usize);
                file.read(0, buffer, Context::of(Purpose::DatabaseRead)).await?;
            }
        }
        Ok(Done::Done)
    }

    fn label(&self, task: &ToyTask) -> Label {
        Label {
            instance: 0,
            database: 1,
            operation: match task {
                ToyTask::Append { .. } => "append",
                ToyTask::LookBack => "look_back",
            },
        }
    }

    fn count(&self, _task: &ToyTask, done: Done, count: &mut dyn FnMut(&'static str)) {
        if let Done::Refused(REFUSED) = done {
            count("append_refused");
        }
    }
}

struct ToyPair {
    think_ns: Nanos,
    service: ToyService,
}

impl ToyPair {
    fn demand(&self) -> ToyDemand {
        ToyDemand { asked: 0, think_ns: self.think_ns }
    }
}

impl Pair for ToyPair {
    type Task = ToyTask;
    type Demand = ToyDemand;
    type Service = ToyService;

    fn weights(&self) -> Vec<f64> {
        vec![1.0]
    }

    fn description(&self) -> String {
        "one tape".into()
    }

    fn session(&self, _: u32, _: Random, _: Random, _: &[usize]) -> ToyDemand {
        self.demand()
    }

    fn arrivals(&self, _: Random, _: Random) -> ToyDemand {
        self.demand()
    }

    fn into_service(self) -> ToyService {
        self.service
    }
}

struct Toy;

fn think_ns(workload: &WorkloadSpec) -> Result<Nanos, String> {
    match workload.options.iter().collect::<Vec<_>>()[..] {
        [(key, Value::Number(number))] if key == "think_ns" => {
            Ok(number.as_u64().unwrap_or_default())
        }
        _ => Err(format!("workload {} says something else than think_ns", workload.name)),
    }
}

impl Family for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn backends(&self) -> &'static [&'static str] {
        &["tape"]
    }

    fn operations(&self) -> &'static [&'static str] {
        &["append", "look_back"]
    }

    fn metrics(&self) -> &'static [Metric] {
        &OURS
    }

    fn check_instance(&self, _: &InstanceSpec) -> Result<(), String> {
        Ok(())
    }

    fn check_workload(&self, workload: &WorkloadSpec, _: &[&InstanceSpec]) -> Result<(), String> {
        think_ns(workload).map(drop)
    }

    fn workload_schema(&self) -> Schema {
        json_schema!({"type": "object", "properties": {"think_ns": {"type": "integer"}},
            "required": ["think_ns"]})
    }

    fn open<'a>(
        &'a self,
        run: &'a RunContext,
        _number: u16,
        instance: &'a InstanceSpec,
    ) -> Work<'a, Result<Rc<dyn Backend>, RunError>> {
        Box::pin(async move {
            let path = instance.database_path(0);
            let context = Context::of(Purpose::Prepare);
            let file = run.files.open(&path, OpenMode::Create, context).await?;
            file.write(0, file.allocate(BLOCK_BYTES as usize), Durability::Volatile, context)
                .await?;
            let tape: Rc<dyn Backend> = Rc::new(Tape { file, path, blocks: Cell::new(1) });
            Ok(tape)
        })
    }

    fn start(&self, load: LoadStart<'_>) -> Result<Box<dyn RunningLoad>, RunError> {
        let tape = load.instances[0].backend.clone().into_any().downcast::<Tape>();
        let service = ToyService {
            run: load.run.clone(),
            tape: tape.unwrap_or_else(|_| unreachable!("the only backend there is")),
        };
        let think_ns = think_ns(load.spec).map_err(RunError::Spec)?;
        Ok(load.start(ToyPair { think_ns, service }))
    }
}

fn plan(load: Value) -> Value {
    let mut plan = spec("tape", load, 20.0);
    let workload = &mut plan["workloads"][0];
    for records in ["mix", "sluggish"] {
        workload.as_object_mut().unwrap().remove(records);
    }
    workload["family"] = json!("toy");
    workload["think_ns"] = json!(1_000_000);
    plan
}

fn run(plan: &Value) -> (RunOutcome, Vec<plimsoll_measure::Row>) {
    let families = Families::of(vec![Rc::new(Toy)]);
    let spec = RunSpec::from_json_for(&plan.to_string(), &families).expect("the spec is right");
    let (samples, rows) = channel();
    let (events, _told) = channel();
    let disk = constant(2_000_000);
    let output = Output { samples, events };
    let clock = disk.clock().clone();
    let outcome = execute_for(&families, spec, clock, disk, output, StopSignal::default());
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    (outcome, rows.try_iter().flatten().collect())
}

fn count(outcome: &RunOutcome, metric: &str) -> u64 {
    let figures = outcome.figures.iter();
    let measured = figures
        .filter(|figures| figures.phase == crate::support::MEASURE && figures.metric == metric);
    measured.map(|figures| figures.count).sum()
}

/// Sessions and arrivals serve it as they serve records, its refusals and inner steps are counted
/// under its own names, and a seed decides all.
#[test]
fn a_family_from_outside_runs_end_to_end() {
    for load in [json!({"sessions": 2, "shared": true}), rate(100.0, 8)] {
        let (outcome, rows) = run(&plan(load));
        let [appends, looks, syncs, refused] =
            ["append", "look_back", "append_sync", "append_refused"]
                .map(|name| count(&outcome, name));
        assert!(appends > 1000, "{appends}");
        assert_eq!(appends, syncs);
        assert!((appends / 4..appends / 2).contains(&looks), "{looks} of {appends}");
        assert!((appends / 9..appends / 5).contains(&refused), "{refused} of {appends}");
        let code = METRICS.len() as u32;
        let sampled: u64 = rows
            .iter()
            .filter(|row| row.metric == code && row.workload == 1)
            .map(|row| row.count)
            .sum();
        assert!(sampled >= appends);
        let state = &outcome.phases[crate::support::MEASURE as usize].result.databases[0][0];
        assert!(state.records_ever > appends);
    }
    let sessions = plan(json!({"sessions": 3, "shared": true}));
    assert_eq!(run(&sessions).1, run(&sessions).1);
}

/// A search finds its operations too, and a phase that asks for what its backend cannot do says so.
#[test]
fn phases_know_it_by_its_capabilities() {
    let load = json!({
        "search": "max", "sessions": 2, "shared": true, "spacing": "regular", "sessions_max": 16,
            "step_s": 2.0, "settle_s": 0.5,
        "tolerance_percent": 20.0,
        "criteria": [{"name": "write", "metric": "database_write", "statistic": "mean",
            "limit": 3.0}]
    });
    let mut searching = plan(load);
    let search = json!({"name": "search", "action": {"kind": "search", "duration_s": 60.0},
        "workloads": ["mix"]});
    searching["phases"].as_array_mut().unwrap().insert(2, search);
    let (outcome, _) = run(&searching);
    let found = outcome.phases[2].result.search.as_ref().expect("a search");
    assert!(found.steps.iter().all(|step| step.done_per_s > 0.0), "{:?}", found.steps);

    let families = Families::of(vec![Rc::new(Toy)]);
    let mut backup = plan(json!({"sessions": 2, "shared": true}));
    backup["phases"][2]["action"] =
        json!({"kind": "backup", "read_bytes": 65536, "reads_in_flight": 4});
    let spec = RunSpec::from_json_for(&backup.to_string(), &families).expect("the spec is right");
    let disk = constant(2_000_000);
    let (samples, _rows) = channel();
    let (events, _told) = channel();
    let output = Output { samples, events };
    let outcome = execute_for(
        &families,
        spec,
        disk.clock().clone(),
        disk.clone(),
        output,
        StopSignal::default(),
    );
    let error = outcome.error.expect("it cannot be backed up").text;
    assert!(error.contains("is tape, which cannot be backed up"), "{error}");
}

/// What a family does not know is refused, and so are families and backends that nobody has.
#[test]
fn what_no_family_knows_is_refused() {
    let refusal = |change: &dyn Fn(&mut Value)| {
        let mut plan = plan(json!({"sessions": 2, "shared": true}));
        change(&mut plan);
        let families = Families::of(vec![Rc::new(Toy)]);
        let read = RunSpec::from_json_for(&plan.to_string(), &families);
        read.expect_err("it is wrong").to_string()
    };
    assert!(
        refusal(&|plan| plan["workloads"][0]["mix"] = json!({}))
            .contains("something else than think_ns")
    );
    assert!(
        refusal(&|plan| plan["workloads"][0]["family"] = json!("mail"))
            .contains("write one of toy")
    );
    assert!(
        refusal(&|plan| plan["instances"][0]["backend"] = json!("engine"))
            .contains("write one of tape")
    );
    let records = spec("engine", json!({"sessions": 2, "shared": true}), 1.0);
    assert!(RunSpec::from_json(&records.to_string()).is_ok());
    let mut unknown = records;
    unknown["workloads"][0]["think_ns"] = json!(1);
    let error =
        RunSpec::from_json(&unknown.to_string()).expect_err("records do not think so").to_string();
    assert!(error.contains("unknown field `think_ns`"), "{error}");
}
