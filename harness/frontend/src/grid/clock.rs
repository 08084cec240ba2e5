//! What happens before: for each class of memory what an invocation knows of the others, and how far their writes have come.

use std::rc::Rc;

use litmus::{Scope, StorageClass, StorageClassSet};

use super::known::Known;

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
    /// The first invocation of its subgroup.
    pub first: u32,
}

#[derive(Clone, Debug, Default)]
struct Others {
    /// For each invocation the time up to which it is known.
    invocations: Known,
    /// For each workgroup the barriers before which everything of it is known.
    workgroups: Known,
    /// For each subgroup, by its first invocation.
    subgroups: Known,
}

impl Others {
    fn parts(&self) -> [&Known; 3] {
        [&self.invocations, &self.workgroups, &self.subgroups]
    }

    fn covers(&self, other: &Others) -> bool {
        self.parts().iter().zip(other.parts()).all(|(mine, theirs)| mine.covers(theirs))
    }

    /// Whether both are told to be the same.
    fn is(&self, other: &Others) -> bool {
        self.parts().iter().zip(other.parts()).all(|(mine, theirs)| mine.is(theirs))
    }

    fn is_empty(&self) -> bool {
        self.parts().iter().all(|known| known.is_empty())
    }

    fn joined(&self, other: &Others) -> Others {
        Others {
            invocations: self.invocations.joined(&other.invocations),
            workgroups: self.workgroups.joined(&other.workgroups),
            subgroups: self.subgroups.joined(&other.subgroups),
        }
    }
}

fn same<T>(one: Option<&Rc<T>>, other: Option<&Rc<T>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Rc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
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
        others.invocations.time(moment.invocation) >= moment.time
            || others.workgroups.time(moment.workgroup) > moment.epoch
            || others.subgroups.time(moment.first) > moment.epoch
    }

    fn is_empty(&self) -> bool {
        self.epoch == 0 && self.others.is_none()
    }

    /// Whether both are told to be the same.
    fn is(&self, other: &Clock) -> bool {
        self.epoch == other.epoch && same(self.others.as_ref(), other.others.as_ref())
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
            (Some(known), Some(others)) if Rc::ptr_eq(known, others) => {}
            (Some(known), Some(others)) => {
                let both = known.joined(others);
                match () {
                    () if both.is(known) => {}
                    () if both.is(others) => *known = others.clone(),
                    () => *known = Rc::new(both),
                }
            }
            (known, Some(others)) => *known = Some(others.clone()),
        }
        if mine != theirs && other.epoch > 0 {
            let known = self.others.get_or_insert_with(Rc::default);
            if known.workgroups.time(theirs) < other.epoch {
                Rc::make_mut(known).workgroups.learn(theirs, other.epoch);
            }
        }
        if mine != theirs
            && let Some(others) = &self.others
        {
            self.epoch = self.epoch.max(others.workgroups.time(mine));
        }
    }

    /// What it knows of those with whom an invocation shares the domain of a level.
    fn within(&self, level: usize, around: &Around) -> Clock {
        let (first, end) = match level {
            0 => return Clock::default(),
            SUBGROUP => around.subgroup,
            WORKGROUP => around.all,
            _ => return self.clone(),
        };
        // Of itself, where there are no others, what is available is told by its time or the barriers of its workgroup.
        let others = self.others.as_ref().filter(|_| end - first > 1).map(|others| Others {
            invocations: others.invocations.between(first, end),
            workgroups: Known::default(),
            subgroups: others.subgroups.between(first, end),
        });
        let others = others.filter(|others| !others.is_empty()).map(Rc::new);
        let mut clock = Clock { epoch: 0, others };
        match level {
            WORKGROUP => clock.epoch = self.epoch,
            _ if self.epoch > 0 => clock.learn_group(first, self.epoch),
            _ => {}
        }
        clock
    }

    /// Learns of a subgroup, by its first invocation, what it did before so many barriers.
    fn learn_group(&mut self, first: u32, epoch: u32) {
        Rc::make_mut(self.others.get_or_insert_with(Rc::default)).subgroups.learn(first, epoch);
    }

    /// Learns of an invocation up to a time.
    pub fn learn(&mut self, invocation: u32, time: u32) {
        Rc::make_mut(self.others.get_or_insert_with(Rc::default)).invocations.learn(invocation, time);
    }
}

/// Joins of clocks of the same two workgroups, most of which are the same: each is made once.
#[derive(Default)]
struct Joins([Option<Join>; 4], usize);

struct Join {
    known: Clock,
    others: Clock,
    both: Clock,
}

impl Joins {
    /// As [`Clock::join`].
    fn join(&mut self, known: &mut Clock, mine: u32, others: &Clock, theirs: u32) {
        // Barriers of another workgroup are told apart from as many of its own.
        if others.is_empty() || mine == theirs && known.is(others) {
            return;
        }
        let made = self.0.iter().flatten().find(|join| join.known.is(known) && join.others.is(others));
        if let Some(made) = made {
            *known = made.both.clone();
            return;
        }
        let before = known.clone();
        known.join(mine, others, theirs);
        let last = self.1 % self.0.len();
        self.0[last] = Some(Join { known: before, others: others.clone(), both: known.clone() });
        self.1 += 1;
    }
}

/// Levels of domains: of an invocation itself, of its subgroup, of its workgroup, of the device.
const SUBGROUP: usize = 1;
const WORKGROUP: usize = 2;
const DEVICE: usize = 3;

/// The level of the domain of a scope.
pub(super) fn level(scope: Scope) -> usize {
    match scope {
        Scope::Invocation => 0,
        Scope::Subgroup => SUBGROUP,
        Scope::Workgroup => WORKGROUP,
        _ => DEVICE,
    }
}

/// The narrowest level at which two share a domain, by their number, workgroup and subgroup.
pub(super) fn nearest(one: (u32, u32, u32), other: (u32, u32, u32)) -> usize {
    match (one.0 == other.0, one.1 == other.1, one.2 == other.2) {
        (true, ..) => 0,
        (_, true, true) => SUBGROUP,
        (_, true, _) => WORKGROUP,
        _ => DEVICE,
    }
}

/// Whether a scope of one joins it with another.
pub(super) fn reaches(scope: Scope, one: (u32, u32, u32), other: (u32, u32, u32)) -> bool {
    level(scope) >= nearest(one, other)
}

/// Whose domains an invocation shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    pub invocation: u32,
    pub workgroup: u32,
    /// The first invocation of its subgroup, and the one behind the last.
    pub subgroup: (u32, u32),
    /// The same of its workgroup.
    pub all: (u32, u32),
}

/// Writes by the level up to which their own operations make them available, and for each level of domain from the subgroup's on.
type Brought = [[Clock; DEVICE]; DEVICE + 1];

/// What happens before, and what of it operations of barriers and atomics brought into domains. Those of an access itself are not
/// kept: what happens before is in each domain that both share, up to its own level.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    pub before: Clock,
    brought: Option<Rc<Brought>>,
}

impl Past {
    fn brought(&mut self) -> &mut Brought {
        Rc::make_mut(self.brought.get_or_insert_with(Rc::default))
    }

    /// Takes what another one knows whose domains it shares from a level on.
    pub fn join(&mut self, mine: u32, other: &Past, theirs: u32, nearest: usize) {
        self.before.join(mine, &other.before, theirs);
        self.join_brought(mine, other, theirs, nearest);
    }

    /// Of that how far writes have come.
    pub fn join_brought(&mut self, mine: u32, other: &Past, theirs: u32, nearest: usize) {
        let Some(brought) = &other.brought else { return };
        match &self.brought {
            Some(known) if Rc::ptr_eq(known, brought) => return,
            None if nearest <= SUBGROUP => {
                self.brought = Some(brought.clone());
                return;
            }
            _ => {}
        }
        let mut joins = Joins::default();
        for (known, others) in self.brought().iter_mut().zip(brought.iter()) {
            for at in nearest.max(SUBGROUP)..=DEVICE {
                joins.join(&mut known[at - 1], mine, &others[at - 1], theirs);
            }
        }
    }

    /// Whether it has all that another one of its subgroup has.
    fn includes(&self, other: &Past) -> bool {
        let brought = match (&self.brought, &other.brought) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(mine), Some(theirs)) => {
                let mut both = mine.iter().flatten().zip(theirs.iter().flatten());
                Rc::ptr_eq(mine, theirs) || both.all(|(mine, theirs)| mine.includes(theirs))
            }
        };
        brought && self.before.includes(&other.before)
    }

    /// An availability operation: what is in narrower domains comes into the wider ones, up to a level. That may be the next link of
    /// a chain. The invocation's own writes do up to a time, if one is given.
    pub fn make_available(&mut self, around: &Around, level: usize, time: Option<u32>) {
        let (mut joins, workgroup) = (Joins::default(), around.workgroup);
        let mut itself = Clock::default();
        time.into_iter().for_each(|time| itself.learn(around.invocation, time));
        for own in 0..level {
            let mut narrower = self.before.within(own, around);
            joins.join(&mut narrower, workgroup, &itself, workgroup);
            let brought = self.brought();
            for at in SUBGROUP..=level {
                let here = &mut brought[own][at - 1];
                if at > own {
                    joins.join(here, workgroup, &narrower, workgroup);
                }
                joins.join(&mut narrower, workgroup, here, workgroup);
            }
        }
    }

    /// Of the invocations of a workgroup that meet in an availability operation each makes its own writes available.
    pub fn all_available(&mut self, level: usize, epoch: u32) {
        for own in 0..level {
            for at in WORKGROUP.max(own + 1)..=level {
                self.brought()[own][at - 1].epoch = epoch;
            }
        }
    }

    /// The same for the domain of a subgroup.
    pub fn subgroup_available(&mut self, first: u32, epoch: u32) {
        self.brought()[0][SUBGROUP - 1].learn_group(first, epoch);
    }
}

/// What an invocation knows of one class of memory.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub past: Past,
    /// What of it visibility operations showed to the invocation: writes as those of [`Brought`].
    shown: Option<Rc<[Clock; DEVICE + 1]>>,
}

impl View {
    /// A visibility operation: what is in wider domains comes into the narrower ones, from a level on. That may be a link of a chain.
    pub fn make_visible(&mut self, around: &Around, level: usize) {
        let (mut joins, mine) = (Joins::default(), around.workgroup);
        for own in 0..=DEVICE {
            let base = own.min(level);
            let by_itself = self.past.before.within(base, around);
            let mut wider = Clock::default();
            for at in (0..=level).rev() {
                let here = match at {
                    0 => &mut Rc::make_mut(self.shown.get_or_insert_with(Rc::default))[own],
                    _ => &mut self.past.brought()[own][at - 1],
                };
                joins.join(here, mine, &wider, mine);
                wider = here.clone();
                if at == base {
                    joins.join(&mut wider, mine, &by_itself, mine);
                }
            }
        }
    }

    /// Whether a write is available to an invocation of a workgroup, in a domain that both share from a level on. `known` is whether it
    /// happens before, and `own` the level of its own operation.
    pub fn is_available(
        &self,
        workgroup: u32,
        write: &Moment,
        known: bool,
        own: usize,
        nearest: usize,
    ) -> bool {
        let knows = |at: usize| {
            self.past.brought.as_ref().is_some_and(|all| all[own][at - 1].knows(workgroup, write))
        };
        known && nearest <= own || (nearest.max(SUBGROUP)..=DEVICE).any(knows)
    }

    /// Whether it is visible as well, to a read with an operation of its own of a level.
    pub fn is_visible(
        &self,
        workgroup: u32,
        write: &Moment,
        known: bool,
        (own, reads): (usize, usize),
        nearest: usize,
    ) -> bool {
        let knows = |at: usize| {
            self.past.brought.as_ref().is_some_and(|all| all[own][at - 1].knows(workgroup, write))
        };
        known && nearest <= own.min(reads)
            || self.shown.as_ref().is_some_and(|shown| shown[own].knows(workgroup, write))
            || (SUBGROUP..=reads).any(knows)
    }

    /// Whether both are told to be the same; where neither is made of the other, they may be so without that.
    pub fn is(&self, other: &View) -> bool {
        let (mine, theirs) = (&self.past, &other.past);
        mine.before.is(&theirs.before)
            && same(mine.brought.as_ref(), theirs.brought.as_ref())
            && same(self.shown.as_ref(), other.shown.as_ref())
    }
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
    /// Of each class.
    pub known: Rc<[Past; 3]>,
}

impl Message {
    /// Whether it gives all that another one of its subgroup gives, of the same scope and classes.
    pub fn includes(&self, other: &Message) -> bool {
        let mut both = self.known.iter().zip(other.known.iter());
        both.all(|(mine, theirs)| mine.includes(theirs))
    }
}

/// What a write carries for whoever reads it: of the releases of a subgroup, several may be told as one.
pub(super) type Carried = Rc<[Rc<Message>]>;

#[cfg(test)]
mod tests {
    use super::{Clock, Joins, Moment};

    /// As many barriers of another workgroup as of the own are something else.
    #[test]
    fn barriers_of_two_workgroups_are_told_apart() {
        let after_one = Clock { epoch: 1, ..Clock::default() };
        let mut mine = after_one.clone();
        Joins::default().join(&mut mine, 0, &after_one, 1);
        let theirs = Moment { invocation: 9, workgroup: 1, time: 1, epoch: 0, first: 8 };
        assert!(mine.knows(0, &theirs) && !after_one.knows(0, &theirs));
    }
}
