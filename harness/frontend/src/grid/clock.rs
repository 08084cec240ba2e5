//! What happens before: for each class of memory what an invocation knows of the others.

use std::rc::Rc;

use litmus::{Scope, StorageClass, StorageClassSet};

/// The classes of memory that are kept apart.
pub(super) const CLASSES: [StorageClass; 3] =
    [StorageClass::Buffer, StorageClass::Workgroup, StorageClass::Image];

/// The number of a class.
pub(super) fn class_index(class: StorageClass) -> usize {
    match class {
        StorageClass::Workgroup => 1,
        StorageClass::Image => 2,
        _ => 0,
    }
}

/// Where an access stands in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub invocation: u32,
    pub workgroup: u32,
    /// Of the invocation, by what it had released.
    pub time: u32,
    /// Barriers of its workgroup for the class.
    pub epoch: u32,
}

/// Numbers with what is known of each, in their order.
type Known = Vec<(u32, u32)>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Others {
    /// For each invocation the time up to which it is known.
    invocations: Known,
    /// For each workgroup the barriers before which everything of it is known.
    workgroups: Known,
}

fn known(all: &Known, of: u32) -> Option<u32> {
    all.binary_search_by_key(&of, |one| one.0).ok().map(|at| all[at].1)
}

fn learn(all: &mut Known, of: u32, up_to: u32) {
    match all.binary_search_by_key(&of, |one| one.0) {
        Ok(at) => all[at].1 = all[at].1.max(up_to),
        Err(at) => all.insert(at, (of, up_to)),
    }
}

/// Whether one knows all that the other does.
fn covers(one: &Known, other: &Known) -> bool {
    let mut mine = one.iter();
    one.len() >= other.len()
        && other.iter().all(|(of, up_to)| {
            mine.by_ref()
                .find(|known| known.0 >= *of)
                .is_some_and(|known| known.0 == *of && known.1 >= *up_to)
        })
}

/// What either knows.
fn joined(one: &Known, other: &Known) -> Known {
    let mut all = Vec::with_capacity(one.len() + other.len());
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if a.0 == b.0 => {
                let both = (a.0, a.1.max(b.1));
                left.next();
                right.next();
                both
            }
            (Some(a), Some(b)) if a.0 > b.0 => {
                let theirs = **b;
                right.next();
                theirs
            }
            (Some(a), _) => {
                let mine = **a;
                left.next();
                mine
            }
            (None, Some(b)) => {
                let theirs = **b;
                right.next();
                theirs
            }
            (None, None) => return all,
        };
        all.push(next);
    }
}

impl Others {
    fn covers(&self, other: &Others) -> bool {
        covers(&self.invocations, &other.invocations) && covers(&self.workgroups, &other.workgroups)
    }
}

/// What is known of the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// Barriers of the own workgroup before which everything of it is known.
    pub epoch: u32,
    others: Option<Rc<Others>>,
}

impl Clock {
    pub fn knows(&self, workgroup: u32, moment: &Moment) -> bool {
        if moment.workgroup == workgroup && moment.epoch < self.epoch {
            return true;
        }
        let Some(others) = &self.others else { return false };
        known(&others.invocations, moment.invocation).is_some_and(|time| time >= moment.time)
            || known(&others.workgroups, moment.workgroup).is_some_and(|epoch| epoch > moment.epoch)
    }

    /// Whether it knows all that another clock of its workgroup does.
    fn includes(&self, other: &Clock) -> bool {
        self.epoch >= other.epoch
            && match (&self.others, &other.others) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(mine), Some(theirs)) => Rc::ptr_eq(mine, theirs) || mine.covers(theirs),
            }
    }

    /// Learns what another clock of a workgroup knows.
    pub fn join(&mut self, mine: u32, other: &Clock, theirs: u32) {
        if mine == theirs {
            self.epoch = self.epoch.max(other.epoch);
        }
        match (&mut self.others, &other.others) {
            (_, None) => {}
            (Some(known), Some(others)) if Rc::ptr_eq(known, others) || known.covers(others) => {}
            (Some(known), Some(others)) if !others.covers(known) => {
                *known = Rc::new(Others {
                    invocations: joined(&known.invocations, &others.invocations),
                    workgroups: joined(&known.workgroups, &others.workgroups),
                });
            }
            (known, Some(others)) => *known = Some(others.clone()),
        }
        if mine != theirs && other.epoch > 0 {
            let known = self.others.get_or_insert_with(Rc::default);
            if self::known(&known.workgroups, theirs).is_none_or(|epoch| epoch < other.epoch) {
                learn(&mut Rc::make_mut(known).workgroups, theirs, other.epoch);
            }
        }
        if mine != theirs
            && let Some(others) = &self.others
            && let Some(epoch) = known(&others.workgroups, mine)
        {
            self.epoch = self.epoch.max(epoch);
        }
    }

    /// Learns of an invocation up to a time.
    pub fn learn(&mut self, invocation: u32, time: u32) {
        learn(&mut Rc::make_mut(self.others.get_or_insert_with(Rc::default)).invocations, invocation, time);
    }
}

/// What an invocation knows of one class of memory.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// What happens before.
    pub before: Clock,
    /// Of it the writes that were made available.
    pub available: Clock,
    /// What was made visible.
    pub visible: Clock,
    /// Of it the writes that were made available.
    pub published: Clock,
}

/// What a release gives to whoever acquires.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub invocation: u32,
    /// Of the invocation, by what it had released.
    pub time: u32,
    /// Whether it is the atomic's own release, not that of a barrier before it.
    pub own: bool,
    pub workgroup: u32,
    pub subgroup: u32,
    pub scope: Scope,
    pub classes: StorageClassSet,
    /// For each class what happened before, and what of it is available.
    pub known: Rc<[(Clock, Clock); 3]>,
}

impl Message {
    /// Whether it gives all that another one of its subgroup gives, of the same scope and classes.
    pub fn includes(&self, other: &Message) -> bool {
        let mut both = self.known.iter().zip(other.known.iter());
        both.all(|(mine, theirs)| mine.0.includes(&theirs.0) && mine.1.includes(&theirs.1))
    }
}

/// What a write carries for whoever reads it: of the releases of a subgroup, several may be told as one.
pub(super) type Carried = Rc<[Rc<Message>]>;

/// Whether a scope of one joins it with another.
pub(super) fn reaches(scope: Scope, one: (u32, u32, u32), other: (u32, u32, u32)) -> bool {
    match scope {
        Scope::Invocation => one.0 == other.0,
        Scope::Subgroup => one.1 == other.1 && one.2 == other.2,
        Scope::Workgroup => one.1 == other.1,
        _ => true,
    }
}
