//! Why taking an instruction away may not matter: what it orders in the code that it was taken from.

use std::collections::BTreeSet;
use std::fmt;

use crate::code::{Code, Node, Way};
use crate::edit::EditKind;
use crate::explore::prepare;
use crate::facts::{Facts, Profile};
use crate::machine::{Machine, Wave};
use crate::opcode::Action;
use crate::question::MachineQuestion;

/// What an instruction orders, over all waves that execute it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Orders {
    /// Shared loads that are complete behind it for its sake, or the load itself where a bit is looked at.
    loads: bool,
    /// Shared stores and atomics that are.
    stores: bool,
    /// Shared loads that may follow in the wave.
    later_loads: bool,
    /// Shared stores and atomics that may.
    later_stores: bool,
    /// Barriers that may follow.
    later_barriers: bool,
    /// Something shared was complete, or a barrier was passed, before it.
    acquired: bool,
    /// Another workgroup uses what is ordered.
    elsewhere: bool,
    /// More than one location is ordered.
    several_locations: bool,
}

/// A class of survivors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SurvivorClass {
    /// Nothing that another wave could notice comes before it: it waits for results of its own, or for nothing.
    NothingBefore,
    /// Nothing that another wave could notice comes behind it.
    NothingBehind,
    /// It keeps loads behind stores, as no acquire or release has to: waits that serve both make it one.
    StoresBeforeLoads,
    /// A bit of a load before which nothing was acquired: an old value is what it may read.
    NothingAcquired,
    /// Other waits, and the queue of a location, order all that it orders.
    Redundant,
    /// Whoever uses or writes the locations shares the cache that it is about in every placement: a workgroup's compute unit up
    /// to GFX9, its shader array.
    OneCache,
    /// It orders accesses to one location, which their queue keeps in order.
    OneLocation,
    /// A bit of a store: stores go to L2 anyhow, and it only says what becomes of the line of its own unit.
    OwnLine,
    /// It orders what others see, and the outcome stays forbidden for another reason.
    Otherwise,
}

impl fmt::Display for SurvivorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SurvivorClass::NothingBefore => "nothing shared before it",
            SurvivorClass::NothingBehind => "nothing shared behind it",
            SurvivorClass::StoresBeforeLoads => "stores before loads",
            SurvivorClass::NothingAcquired => "nothing acquired before it",
            SurvivorClass::Redundant => "another wait does it",
            SurvivorClass::OneCache => "one cache",
            SurvivorClass::OneLocation => "one location",
            SurvivorClass::OwnLine => "its own line",
            SurvivorClass::Otherwise => "forbidden otherwise",
        })
    }
}

/// What the instruction at a line of a kernel orders; nothing where the question cannot be prepared.
fn orders(
    question: &MachineQuestion,
    kernel: usize,
    line: u32,
    profile: Profile,
    facts: &Facts,
) -> Option<Orders> {
    let (machine, _) = prepare(question, profile, facts).ok()?;
    let mut orders = Orders::default();
    for wave in machine.waves.iter().filter(|wave| wave.kernel == kernel) {
        let mut walk = Walk {
            machine: &machine,
            wave,
            line,
            orders: &mut orders,
            cells: BTreeSet::new(),
            of_a_bit: false,
        };
        walk.go(0, false, false);
        let cells = walk.cells;
        orders.several_locations |= cells.len() > 1;
        orders.elsewhere |= cells.iter().any(|cell| used_elsewhere(&machine, wave.workgroup, *cell));
    }
    Some(orders)
}

/// The class of an edit of a kernel that the explorer does not notice; nothing where a question cannot be prepared. `edited` is
/// the question with the edit.
pub fn class(
    question: &MachineQuestion,
    edited: &MachineQuestion,
    (kernel, line, kind): (usize, u32, EditKind),
    profile: Profile,
    facts: &Facts,
) -> Option<SurvivorClass> {
    let orders = orders(question, kernel, line, profile, facts)?;
    let generation = question.family.generation();
    Some(match kind {
        EditKind::StoreBit => SurvivorClass::OwnLine,
        EditKind::LoadBit | EditKind::LoadArrayBit => {
            // From GFX10 on the waves of a workgroup may be on two compute units, and are in one array all the same.
            let one_cache = kind == EditKind::LoadArrayBit || !generation.spreads_workgroups();
            class_of_load_bit(&orders, one_cache)
        }
        _ => match class_of_wait(&orders, kind == EditKind::VectorWait && !generation.spreads_workgroups()) {
            SurvivorClass::Otherwise
                if unordered(question, profile, facts)? == unordered(edited, profile, facts)? =>
            {
                SurvivorClass::Redundant
            }
            class => class,
        },
    })
}

/// The class of a wait or barrier, as far as what it orders says; `one_cache` where it is for vector memory and a workgroup's
/// waves share their vector cache.
fn class_of_wait(orders: &Orders, one_cache: bool) -> SurvivorClass {
    if !orders.loads && !orders.stores {
        SurvivorClass::NothingBefore
    } else if !orders.later_loads && !orders.later_stores && !orders.later_barriers {
        SurvivorClass::NothingBehind
    } else if !orders.loads && !orders.later_stores && !orders.later_barriers {
        SurvivorClass::StoresBeforeLoads
    } else if !orders.several_locations && !orders.later_barriers {
        SurvivorClass::OneLocation
    } else if one_cache && !orders.elsewhere {
        SurvivorClass::OneCache
    } else {
        SurvivorClass::Otherwise
    }
}

/// The class of a bit of a load; `one_cache` where the bit is about a cache that the workgroup's waves share.
fn class_of_load_bit(orders: &Orders, one_cache: bool) -> SurvivorClass {
    if !orders.loads {
        SurvivorClass::NothingBefore
    } else if !orders.acquired {
        SurvivorClass::NothingAcquired
    } else if one_cache && !orders.elsewhere {
        SurvivorClass::OneCache
    } else {
        SurvivorClass::Otherwise
    }
}

/// Pairs of lines of a kernel, of a shared access and of a later one to another location or a barrier, with no wait for the
/// first between.
type Pairs = BTreeSet<(usize, u32, u32)>;

fn unordered(question: &MachineQuestion, profile: Profile, facts: &Facts) -> Option<Pairs> {
    let (machine, _) = prepare(question, profile, facts).ok()?;
    let mut pairs = Pairs::new();
    for wave in &machine.waves {
        let mut open: Vec<(usize, Vec<u16>)> = vec![(0, Vec::new())];
        while let Some((from, mut pending)) = open.pop() {
            for node in wave.code.nodes.iter().skip(from) {
                let line_of = |access: u16| {
                    wave.code.accesses.get(usize::from(access)).map_or(0, |details| details.line)
                };
                let meets = |pairs: &mut Pairs, pending: &[u16], line: u32| {
                    pairs.extend(pending.iter().map(|access| (wave.kernel, line_of(*access), line)));
                };
                match node {
                    Node::End => break,
                    Node::Access(access) if is_shared(&machine, wave, *access) => {
                        // Accesses to one location are in order anyhow.
                        let cells = |access: &u16| wave.cells.get(usize::from(*access));
                        let others: Vec<u16> = pending
                            .iter()
                            .filter(|earlier| cells(earlier) != cells(access))
                            .copied()
                            .collect();
                        meets(&mut pairs, &others, line_of(*access));
                        pending.push(*access);
                    }
                    Node::Wait { accesses, .. } => pending.retain(|access| !accesses.contains(access)),
                    Node::Signal { line } | Node::Join { line } => meets(&mut pairs, &pending, *line),
                    Node::Decide { other, .. } => open.push((*other as usize, pending.clone())),
                    Node::Access(_) | Node::Cache { .. } => {}
                }
            }
        }
    }
    Some(pairs)
}

/// Returns true if a wave of another workgroup uses a location.
fn used_elsewhere(machine: &Machine, workgroup: usize, cell: u16) -> bool {
    let others = machine.waves.iter().filter(|wave| wave.workgroup != workgroup);
    others.flat_map(|wave| wave.cells.iter().flatten()).any(|used| *used == cell)
}

/// Returns true if another wave can notice an access.
fn is_shared(machine: &Machine, wave: &Wave, access: u16) -> bool {
    let cells = wave.cells.get(usize::from(access)).map(Vec::as_slice).unwrap_or_default();
    cells.iter().any(|cell| !machine.cells.get(usize::from(*cell)).is_none_or(|cell| cell.private))
}

/// Follows the tree of a wave.
struct Walk<'m> {
    machine: &'m Machine,
    wave: &'m Wave,
    line: u32,
    orders: &'m mut Orders,
    /// Shared locations that are ordered.
    cells: BTreeSet<u16>,
    /// The line is an access, of which a bit is looked at: what is behind it is not ordered by it.
    of_a_bit: bool,
}

impl Walk<'_> {
    fn code(&self) -> &Code {
        &self.wave.code
    }

    /// Returns whether another wave can notice an access, and whether it writes.
    fn shared(&self, access: u16) -> Option<bool> {
        let details = self.code().accesses.get(usize::from(access))?;
        is_shared(self.machine, self.wave, access).then_some(!matches!(details.action, Action::Load { .. }))
    }

    /// Notes the locations of an access that is ordered.
    fn orders_cells(&mut self, access: u16) {
        if is_shared(self.machine, self.wave, access) {
            self.cells.extend(self.wave.cells.get(usize::from(access)).into_iter().flatten());
        }
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
                    if behind && !self.of_a_bit {
                        self.orders_cells(access);
                    }
                    if behind {
                        self.orders.later_loads |= shared == Some(false);
                        self.orders.later_stores |= shared == Some(true);
                    }
                    if line == self.line && way != Way::Lds {
                        self.orders.loads |= shared == Some(false);
                        self.orders.stores |= shared == Some(true);
                        self.orders.acquired |= acquired;
                        self.orders_cells(access);
                        (behind, self.of_a_bit) = (true, true);
                    }
                    before.push(access);
                }
                Node::Wait { line, accesses } => {
                    if line == self.line {
                        for access in &accesses {
                            self.orders_cells(*access);
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
                            self.orders_cells(*access);
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
