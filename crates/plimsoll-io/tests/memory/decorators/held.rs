//! A disk whose writes can be held; what it does while they are held is seen on real disks.

use std::rc::Rc;

use plimsoll_io::{Held, StopSignal, WriteHold};

use crate::decorators::check_decorator;

#[test]
fn a_disk_that_nobody_holds_keeps_the_contract() {
    check_decorator(|disk, clock| {
        Rc::new(Held::new(disk, clock, WriteHold::default(), StopSignal::default()))
    });
}
