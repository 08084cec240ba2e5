//! What happens before: for each class of memory what an invocation knows of the others.

use std::collections::BTreeMap;
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
    /// Steps of the invocation.
    pub time: u32,
    /// Barriers of its workgroup for the class.
    pub epoch: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Others {
    /// For each invocation the step up to which it is known.
    invocations: BTreeMap<u32, u32>,
    /// For each workgroup the barriers before which everything of it is known.
    workgroups: BTreeMap<u32, u32>,
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
        others.invocations.get(&moment.invocation).is_some_and(|time| *time >= moment.time)
            || others.workgroups.get(&moment.workgroup).is_some_and(|epoch| *epoch > moment.epoch)
    }

    /// Learns what another clock of a workgroup knows.
    pub fn join(&mut self, mine: u32, other: &Clock, theirs: u32) {
        if mine == theirs {
            self.epoch = self.epoch.max(other.epoch);
        }
        let foreign = mine != theirs && other.epoch > 0;
        match (&mut self.others, &other.others) {
            (_, None) if !foreign => {}
            (mine @ None, Some(others)) if !foreign => *mine = Some(others.clone()),
            (Some(known), Some(others)) if !foreign && Rc::ptr_eq(known, others) => {}
            (known, others) => {
                let known = Rc::make_mut(known.get_or_insert_with(Rc::default));
                if let Some(others) = others {
                    for (invocation, time) in &others.invocations {
                        let mine = known.invocations.entry(*invocation).or_default();
                        *mine = (*mine).max(*time);
                    }
                    for (workgroup, epoch) in &others.workgroups {
                        let mine = known.workgroups.entry(*workgroup).or_default();
                        *mine = (*mine).max(*epoch);
                    }
                }
                if foreign {
                    let mine = known.workgroups.entry(theirs).or_default();
                    *mine = (*mine).max(other.epoch);
                }
            }
        }
        if mine != theirs
            && let Some(known) = &mut self.others
            && let Some(epoch) = known.workgroups.get(&mine)
        {
            self.epoch = self.epoch.max(*epoch);
        }
    }

    /// Learns of an invocation up to a step.
    pub fn learn(&mut self, invocation: u32, time: u32) {
        let known = Rc::make_mut(self.others.get_or_insert_with(Rc::default));
        let mine = known.invocations.entry(invocation).or_default();
        *mine = (*mine).max(time);
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
    /// Steps of the invocation.
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

/// Whether a scope of one joins it with another.
pub(super) fn reaches(scope: Scope, one: (u32, u32, u32), other: (u32, u32, u32)) -> bool {
    match scope {
        Scope::Invocation => one.0 == other.0,
        Scope::Subgroup => one.1 == other.1 && one.2 == other.2,
        Scope::Workgroup => one.1 == other.1,
        _ => true,
    }
}
