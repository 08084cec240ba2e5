//! Why taking an instruction away may not matter: what it orders in the code that it was taken from.

use std::fmt;

use crate::code::{Code, Node, Way};
use crate::explore::prepare;
use crate::facts::{Facts, Profile};
use crate::machine::{Machine, Wave};
use crate::opcode::Action;
use crate::question::Question;

/// What an instruction orders, over all waves that execute it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Orders {
    /// Shared loads that are complete behind it for its sake, or the load itself where a bit is looked at.
    pub loads: bool,
    /// Shared stores and atomics that are.
    pub stores: bool,
    /// Shared loads that may follow in the wave.
    pub later_loads: bool,
    /// Shared stores and atomics that may.
    pub later_stores: bool,
    /// Barriers that may follow.
    pub later_barriers: bool,
    /// Something shared was complete, or a barrier was passed, before it.
    pub acquired: bool,
}

/// A class of survivors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Nothing that another wave could notice comes before it: it waits for results of its own, or for nothing.
    NothingBefore,
    /// Nothing that another wave could notice comes behind it.
    NothingBehind,
    /// It keeps loads behind stores, as no acquire or release has to: waits that serve both make it one.
    StoresBeforeLoads,
    /// A bit of a load before which nothing was acquired: an old value is what it may read.
    NothingAcquired,
    /// A bit of a store: stores go to L2 anyhow, and it only says what becomes of the line of its own unit.
    OwnLine,
    /// It orders what others see, and the outcome stays forbidden for another reason.
    Otherwise,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::NothingBefore => "nothing shared before it",
            Class::NothingBehind => "nothing shared behind it",
            Class::StoresBeforeLoads => "stores before loads",
            Class::NothingAcquired => "nothing acquired before it",
            Class::OwnLine => "its own line",
            Class::Otherwise => "forbidden otherwise",
        })
    }
}

/// What the instruction at a line of a kernel orders; nothing where the question cannot be prepared.
pub fn orders(
    question: &Question,
    kernel: usize,
    line: u32,
    profile: Profile,
    facts: &Facts,
) -> Option<Orders> {
    let (machine, _) = prepare(question, profile, facts).ok()?;
    let mut orders = Orders::default();
    for wave in machine.waves.iter().filter(|wave| wave.kernel == kernel) {
        let mut walk = Walk { machine: &machine, wave, line, orders: &mut orders };
        walk.go(0, false, false);
    }
    Some(orders)
}

/// The class of a survivor that was a wait or barrier.
pub fn class_of_wait(orders: &Orders) -> Class {
    if !orders.loads && !orders.stores {
        Class::NothingBefore
    } else if !orders.later_loads && !orders.later_stores && !orders.later_barriers {
        Class::NothingBehind
    } else if !orders.loads && !orders.later_stores && !orders.later_barriers {
        Class::StoresBeforeLoads
    } else {
        Class::Otherwise
    }
}

/// The class of a survivor that was a bit of a load.
pub fn class_of_load_bit(orders: &Orders) -> Class {
    if !orders.loads {
        Class::NothingBefore
    } else if !orders.acquired {
        Class::NothingAcquired
    } else {
        Class::Otherwise
    }
}

/// Follows the tree of a wave.
struct Walk<'m> {
    machine: &'m Machine,
    wave: &'m Wave,
    line: u32,
    orders: &'m mut Orders,
}

impl Walk<'_> {
    fn code(&self) -> &Code {
        &self.wave.code
    }

    /// Whether another wave can notice an access, and whether it writes.
    fn shared(&self, access: u16) -> Option<bool> {
        let details = self.code().accesses.get(usize::from(access))?;
        let cells = self.wave.cells.get(usize::from(access))?;
        let noticed = cells
            .iter()
            .any(|cell| !self.machine.cells.get(usize::from(*cell)).is_none_or(|cell| cell.private));
        noticed.then_some(!matches!(details.action, Action::Load { .. }))
    }

    fn go(&mut self, from: usize, mut behind: bool, mut acquired: bool) {
        let mut at = from;
        let mut before: Vec<u16> = Vec::new();
        while let Some(node) = self.code().nodes.get(at).cloned() {
            match node {
                Node::End => return,
                Node::Access(access) => {
                    let Some(details) = self.code().accesses.get(usize::from(access)) else { return };
                    let (line, way) = (details.line, details.way);
                    let shared = self.shared(access);
                    if behind {
                        self.orders.later_loads |= shared == Some(false);
                        self.orders.later_stores |= shared == Some(true);
                    }
                    if line == self.line && way != Way::Lds {
                        self.orders.loads |= shared == Some(false);
                        self.orders.stores |= shared == Some(true);
                        self.orders.acquired |= acquired;
                        behind = true;
                    }
                    before.push(access);
                }
                Node::Wait { line, accesses } => {
                    if line == self.line {
                        for access in &accesses {
                            self.orders.loads |= self.shared(*access) == Some(false);
                            self.orders.stores |= self.shared(*access) == Some(true);
                        }
                        self.orders.acquired |= acquired;
                        behind = true;
                    }
                    acquired |= accesses.iter().any(|access| self.shared(*access) == Some(false));
                }
                Node::Signal { line } | Node::Join { line } => {
                    if line == self.line {
                        for access in &before {
                            self.orders.loads |= self.shared(*access) == Some(false);
                            self.orders.stores |= self.shared(*access) == Some(true);
                        }
                        behind = true;
                    } else if behind {
                        self.orders.later_barriers = true;
                    }
                    acquired = true;
                }
                Node::Cache { .. } => {}
                Node::Decide { other, .. } => self.go(other as usize, behind, acquired),
            }
            at += 1;
        }
    }
}
