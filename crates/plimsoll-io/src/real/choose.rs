//! Finding the method: each is tried for real, in order, and each refusal is kept for the record.

use std::sync::Arc;

use super::{Method, MethodChoice, RealDiskOptions};
use crate::libaio::LibaioQueue;
use crate::posix::Wakeup;
use crate::threads::ThreadQueue;
use crate::transfer::{Refusal, TransferQueue};
use crate::uring::UringQueue;
use crate::{DiskError, DiskErrorKind};

/// A method that works.
pub(super) struct Chosen {
    pub method: Method,
    pub queue: Box<dyn TransferQueue>,
    pub remarks: Vec<String>,
}

/// Takes the wanted method, or the first that works.
pub(super) fn choose(options: &RealDiskOptions, wakeup: &Arc<Wakeup>) -> Result<Chosen, DiskError> {
    let wanted = match options.method {
        MethodChoice::Auto => Method::ALL.to_vec(),
        MethodChoice::Only(method) => vec![method],
    };
    let mut remarks = Vec::new();
    let mut last_refusal = None;
    for method in wanted {
        match open_queue(method, options, wakeup, &mut remarks) {
            Ok(queue) => {
                return Ok(Chosen { method, queue, remarks });
            }
            Err(refusal) => {
                remarks.push(format!("{} is not used: {}", method.name(), refusal.reason));
                last_refusal = Some((method, refusal));
            }
        }
    }
    let (method, refusal) = last_refusal.expect("at least one method was tried");
    Err(DiskError {
        errno: refusal.errno,
        ..DiskError::new(DiskErrorKind::Unsupported, "set up", method.name())
            .because(refusal.reason)
    })
}

/// Tries a method and lets it go again; the error says why it cannot be had.
pub(crate) fn probe_method(method: Method, remarks: &mut Vec<String>) -> Result<(), String> {
    let wakeup = Wakeup::new().map_err(|errno| Refusal::by_kernel("eventfd", errno).reason)?;
    let options = RealDiskOptions { queue_depth_max: 8, ..RealDiskOptions::default() };
    open_queue(method, &options, &Arc::new(wakeup), remarks)
        .map(drop)
        .map_err(|refusal| refusal.reason)
}

fn open_queue(
    method: Method,
    options: &RealDiskOptions,
    wakeup: &Arc<Wakeup>,
    remarks: &mut Vec<String>,
) -> Result<Box<dyn TransferQueue>, Refusal> {
    if options.refused_methods.contains(&method) {
        return Err(Refusal { reason: "refused by the options".to_owned(), errno: None });
    }
    let (depth, wakeup) = (options.queue_depth_max, wakeup.clone());
    Ok(match method {
        Method::IoUring => Box::new(UringQueue::open(depth, wakeup, remarks)?),
        Method::Libaio => Box::new(LibaioQueue::open(depth, wakeup)?),
        Method::Threads => Box::new(ThreadQueue::new(options.threads_max, wakeup)),
    })
}
