//! The real disk, by each of its methods: the contract, and what happens when kernel, file system
//! or device refuse.

mod devices;
mod executor_time;
mod files;
mod held;
mod left_over;
mod methods;
mod place;
mod probing;
mod refusals;
mod seccomp;
mod space;
#[path = "../support/mod.rs"]
mod support;

use std::future::Future;
use std::rc::Rc;

use plimsoll_io::{
    Clock, Context, DiskError, DiskErrorKind, Executor, Files, Method, MethodChoice, Purpose,
    RealDisk, RealDiskOptions, probe,
};

const CONTEXT: Context = Context {
    purpose: Purpose::Header,
    instance: plimsoll_io::InstanceId(0),
    database: 0,
    intended: None,
};

/// A real disk with its executor.
struct Machine {
    disk: Rc<RealDisk>,
    clock: Rc<Clock>,
}

impl Machine {
    fn with(options: RealDiskOptions) -> Self {
        let clock = Rc::new(Clock::real());
        let disk = RealDisk::open(options, clock.clone()).expect("this machine has the method");
        Self { disk, clock }
    }

    fn by(method: Method) -> Self {
        Self::with(options_for(method))
    }

    fn files(&self) -> Files {
        Files::new(self.disk.clone())
    }

    fn run<T: 'static>(&self, story: impl Future<Output = T> + 'static) -> T {
        Executor::new(self.clock.clone(), self.disk.clone())
            .run(story)
            .expect("every operation completes")
    }
}

/// The methods this machine allows, as probed from outside the disk; says which tests are therefore
/// not run.
fn methods_here() -> Vec<Method> {
    let found = probe("/".as_ref()).expect("the root exists");
    let allowed = |name| {
        let method = found.methods.iter().find(|method| method.name == name);
        let refusal = method.and_then(|method| method.refusal.as_ref());
        if let Some(refusal) = refusal {
            eprintln!("skipped: {name} is refused here ({refusal})");
        }
        refusal.is_none()
    };
    let methods = Method::ALL.into_iter();
    methods.filter(|method| allowed(method.name())).collect()
}

fn options_for(method: Method) -> RealDiskOptions {
    RealDiskOptions { method: MethodChoice::Only(method), ..RealDiskOptions::default() }
}

fn kind_of<T>(result: Result<T, DiskError>) -> Option<DiskErrorKind> {
    result.err().map(|error| error.kind)
}
