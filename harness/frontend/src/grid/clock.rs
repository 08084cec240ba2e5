//! What happens before: for each class of memory what an invocation knows of the others, and how far their writes have come.

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
    /// The first invocation of its subgroup.
    pub first: u32,
}

/// Numbers with what is known of each, in their order.
type Known = Vec<(u32, u32)>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Others {
    /// For each invocation the time up to which it is known.
    invocations: Known,
    /// For each workgroup, and each subgroup by [`group_of`], the barriers before which everything of it is known.
    groups: Known,
}

/// The number of a subgroup beside those of workgroups, by its first invocation.
fn group_of(first: u32) -> u32 {
    1 << (u32::BITS - 1) | first
}

/// Those of a range of numbers.
fn between(all: &Known, first: u32, end: u32) -> Known {
    let from = |number: u32| all.partition_point(|one| one.0 < number);
    all[from(first)..from(end)].to_vec()
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
        covers(&self.invocations, &other.invocations) && covers(&self.groups, &other.groups)
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
            || [moment.workgroup, group_of(moment.first)]
                .iter()
                .any(|group| known(&others.groups, *group).is_some_and(|epoch| epoch > moment.epoch))
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
                    groups: joined(&known.groups, &others.groups),
                });
            }
            (known, Some(others)) => *known = Some(others.clone()),
        }
        if mine != theirs && other.epoch > 0 {
            let known = self.others.get_or_insert_with(Rc::default);
            if self::known(&known.groups, theirs).is_none_or(|epoch| epoch < other.epoch) {
                learn(&mut Rc::make_mut(known).groups, theirs, other.epoch);
            }
        }
        if mine != theirs
            && let Some(others) = &self.others
            && let Some(epoch) = known(&others.groups, mine)
        {
            self.epoch = self.epoch.max(epoch);
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
        let others = self.others.as_ref().map(|others| Others {
            invocations: between(&others.invocations, first, end),
            groups: between(&others.groups, group_of(first), group_of(end)),
        });
        let others = others.filter(|others| *others != Others::default()).map(Rc::new);
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
        learn(&mut Rc::make_mut(self.others.get_or_insert_with(Rc::default)).groups, group_of(first), epoch);
    }

    /// Learns of an invocation up to a time.
    pub fn learn(&mut self, invocation: u32, time: u32) {
        learn(&mut Rc::make_mut(self.others.get_or_insert_with(Rc::default)).invocations, invocation, time);
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
        for (known, others) in self.brought().iter_mut().zip(brought.iter()) {
            for at in nearest.max(SUBGROUP)..=DEVICE {
                known[at - 1].join(mine, &others[at - 1], theirs);
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
        for own in 0..level {
            let mut narrower = self.before.within(own, around);
            let brought = self.brought();
            for at in SUBGROUP..=level {
                let here = &mut brought[own][at - 1];
                if at > own {
                    here.join(around.workgroup, &narrower, around.workgroup);
                    time.into_iter().for_each(|time| here.learn(around.invocation, time));
                }
                narrower.join(around.workgroup, here, around.workgroup);
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
        let mine = around.workgroup;
        for own in 0..=DEVICE {
            let base = own.min(level);
            let by_itself = self.past.before.within(base, around);
            let mut wider = Clock::default();
            for at in (0..=level).rev() {
                let here = match at {
                    0 => &mut Rc::make_mut(self.shown.get_or_insert_with(Rc::default))[own],
                    _ => &mut self.past.brought()[own][at - 1],
                };
                here.join(mine, &wider, mine);
                wider = here.clone();
                if at == base {
                    wider.join(mine, &by_itself, mine);
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
        fn same<T>(one: Option<&Rc<T>>, other: Option<&Rc<T>>) -> bool {
            match (one, other) {
                (Some(one), Some(other)) => Rc::ptr_eq(one, other),
                (one, other) => one.is_none() && other.is_none(),
            }
        }
        let (mine, theirs) = (&self.past, &other.past);
        mine.before.epoch == theirs.before.epoch
            && same(mine.before.others.as_ref(), theirs.before.others.as_ref())
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
