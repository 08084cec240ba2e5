//! What happens before: for each class of memory what an invocation knows of the others, and how far their writes have come.

use std::rc::Rc;

use litmus::{Scope, StorageClass, StorageClassSet};

use super::vector_clock::VectorClock;

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
pub(super) struct Epoch {
    pub invocation: u32,
    pub workgroup: u32,
    /// Of the invocation, by what it had released.
    pub time: u32,
    /// Barriers of its workgroup for the class.
    pub barrier_epoch: u32,
    /// The first invocation of its subgroup.
    pub subgroup_start: u32,
}

#[derive(Clone, Debug, Default)]
struct ClockComponents {
    /// For each invocation the time up to which it is known.
    invocations: VectorClock,
    /// For each workgroup the barriers before which everything of it is known.
    workgroups: VectorClock,
    /// For each subgroup, by its first invocation.
    subgroups: VectorClock,
}

impl ClockComponents {
    fn as_vector_clocks(&self) -> [&VectorClock; 3] {
        [&self.invocations, &self.workgroups, &self.subgroups]
    }

    fn is_at_least(&self, other: &ClockComponents) -> bool {
        self.as_vector_clocks()
            .iter()
            .zip(other.as_vector_clocks())
            .all(|(mine, theirs)| mine.is_at_least(theirs))
    }

    /// Whether both are told to be the same.
    fn ptr_eq(&self, other: &ClockComponents) -> bool {
        self.as_vector_clocks().iter().zip(other.as_vector_clocks()).all(|(mine, theirs)| mine.ptr_eq(theirs))
    }

    fn is_empty(&self) -> bool {
        self.as_vector_clocks().iter().all(|known| known.is_empty())
    }

    fn joined_with(&self, other: &ClockComponents) -> ClockComponents {
        ClockComponents {
            invocations: self.invocations.joined_with(&other.invocations),
            workgroups: self.workgroups.joined_with(&other.workgroups),
            subgroups: self.subgroups.joined_with(&other.subgroups),
        }
    }
}

fn ptr_eq_options<T>(one: Option<&Rc<T>>, other: Option<&Rc<T>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Rc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// What is known of the others.
#[derive(Clone, Debug, Default)]
pub(super) struct HappensBeforeClock {
    /// Barriers of the own workgroup before which everything of it is known.
    pub barrier_epoch: u32,
    components: Option<Rc<ClockComponents>>,
}

impl HappensBeforeClock {
    pub fn includes_epoch(&self, workgroup: u32, moment: &Epoch) -> bool {
        if moment.workgroup == workgroup && moment.barrier_epoch < self.barrier_epoch {
            return true;
        }
        let Some(others) = &self.components else { return false };
        others.invocations.timestamp_of(moment.invocation) >= moment.time
            || others.workgroups.timestamp_of(moment.workgroup) > moment.barrier_epoch
            || others.subgroups.timestamp_of(moment.subgroup_start) > moment.barrier_epoch
    }

    fn is_empty(&self) -> bool {
        self.barrier_epoch == 0 && self.components.is_none()
    }

    /// Whether both are told to be the same.
    fn ptr_eq(&self, other: &HappensBeforeClock) -> bool {
        self.barrier_epoch == other.barrier_epoch
            && ptr_eq_options(self.components.as_ref(), other.components.as_ref())
    }

    /// Whether it knows all that another clock of its workgroup does.
    fn is_at_least(&self, other: &HappensBeforeClock) -> bool {
        self.barrier_epoch >= other.barrier_epoch
            && match (&self.components, &other.components) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(mine), Some(theirs)) => Rc::ptr_eq(mine, theirs) || mine.is_at_least(theirs),
            }
    }

    /// Learns what another clock of a workgroup knows.
    pub fn join_from(&mut self, mine: u32, other: &HappensBeforeClock, theirs: u32) {
        if mine == theirs {
            self.barrier_epoch = self.barrier_epoch.max(other.barrier_epoch);
        }
        match (&mut self.components, &other.components) {
            (_, None) => {}
            (Some(known), Some(others)) if Rc::ptr_eq(known, others) => {}
            (Some(known), Some(others)) => {
                let both = known.joined_with(others);
                match () {
                    () if both.ptr_eq(known) => {}
                    () if both.ptr_eq(others) => *known = others.clone(),
                    () => *known = Rc::new(both),
                }
            }
            (known, Some(others)) => *known = Some(others.clone()),
        }
        if mine != theirs && other.barrier_epoch > 0 {
            let known = self.components.get_or_insert_with(Rc::default);
            if known.workgroups.timestamp_of(theirs) < other.barrier_epoch {
                Rc::make_mut(known).workgroups.advance_to(theirs, other.barrier_epoch);
            }
        }
        if mine != theirs
            && let Some(others) = &self.components
        {
            self.barrier_epoch = self.barrier_epoch.max(others.workgroups.timestamp_of(mine));
        }
    }

    /// What it knows of those with whom an invocation shares the domain of a level.
    fn restrict_to_domain(&self, level: usize, around: &DomainExtents) -> HappensBeforeClock {
        let (first, end) = match level {
            0 => return HappensBeforeClock::default(),
            SUBGROUP => around.subgroup_range,
            WORKGROUP => around.workgroup_range,
            _ => return self.clone(),
        };
        // Of itself, where there are no others, what is available is told by its time or the barriers of its workgroup.
        let others = self.components.as_ref().filter(|_| end - first > 1).map(|others| ClockComponents {
            invocations: others.invocations.restrict_to(first, end),
            workgroups: VectorClock::default(),
            subgroups: others.subgroups.restrict_to(first, end),
        });
        let others = others.filter(|others| !others.is_empty()).map(Rc::new);
        let mut clock = HappensBeforeClock { barrier_epoch: 0, components: others };
        match level {
            WORKGROUP => clock.barrier_epoch = self.barrier_epoch,
            _ if self.barrier_epoch > 0 => clock.advance_subgroup(first, self.barrier_epoch),
            _ => {}
        }
        clock
    }

    /// Learns of a subgroup, by its first invocation, what it did before so many barriers.
    fn advance_subgroup(&mut self, first: u32, epoch: u32) {
        Rc::make_mut(self.components.get_or_insert_with(Rc::default)).subgroups.advance_to(first, epoch);
    }

    /// Learns of an invocation up to a time.
    pub fn advance_invocation(&mut self, invocation: u32, time: u32) {
        Rc::make_mut(self.components.get_or_insert_with(Rc::default))
            .invocations
            .advance_to(invocation, time);
    }
}

/// Joins of clocks of the same two workgroups, most of which are the same: each is made once.
#[derive(Default)]
struct JoinCache([Option<CachedJoin>; 4], usize);

struct CachedJoin {
    left: HappensBeforeClock,
    right: HappensBeforeClock,
    joined: HappensBeforeClock,
}

impl JoinCache {
    /// As [`Clock::join`].
    fn join_cached(
        &mut self,
        known: &mut HappensBeforeClock,
        mine: u32,
        others: &HappensBeforeClock,
        theirs: u32,
    ) {
        // Barriers of another workgroup are told apart from as many of its own.
        if others.is_empty() || mine == theirs && known.ptr_eq(others) {
            return;
        }
        let made = self.0.iter().flatten().find(|join| join.left.ptr_eq(known) && join.right.ptr_eq(others));
        if let Some(made) = made {
            *known = made.joined.clone();
            return;
        }
        let before = known.clone();
        known.join_from(mine, others, theirs);
        let last = self.1 % self.0.len();
        self.0[last] = Some(CachedJoin { left: before, right: others.clone(), joined: known.clone() });
        self.1 += 1;
    }
}

/// Levels of domains: of an invocation itself, of its subgroup, of its workgroup, of the device.
const SUBGROUP: usize = 1;
const WORKGROUP: usize = 2;
const DEVICE: usize = 3;

/// The level of the domain of a scope.
pub(super) fn domain_level(scope: Scope) -> usize {
    match scope {
        Scope::Invocation => 0,
        Scope::Subgroup => SUBGROUP,
        Scope::Workgroup => WORKGROUP,
        _ => DEVICE,
    }
}

/// The narrowest level at which two share a domain, by their number, workgroup and subgroup.
pub(super) fn nearest_shared_domain(one: (u32, u32, u32), other: (u32, u32, u32)) -> usize {
    match (one.0 == other.0, one.1 == other.1, one.2 == other.2) {
        (true, ..) => 0,
        (_, true, true) => SUBGROUP,
        (_, true, _) => WORKGROUP,
        _ => DEVICE,
    }
}

/// Whether a scope of one joins it with another.
pub(super) fn scope_includes(scope: Scope, one: (u32, u32, u32), other: (u32, u32, u32)) -> bool {
    domain_level(scope) >= nearest_shared_domain(one, other)
}

/// Whose domains an invocation shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct DomainExtents {
    pub invocation: u32,
    pub workgroup: u32,
    /// The first invocation of its subgroup, and the one behind the last.
    pub subgroup_range: (u32, u32),
    /// The same of its workgroup.
    pub workgroup_range: (u32, u32),
}

/// Writes by the level up to which their own operations make them available, and for each level of domain from the subgroup's on.
type AvailabilityClocks = [[HappensBeforeClock; DEVICE]; DEVICE + 1];

/// What happens before, and what of it operations of barriers and atomics brought into domains. Those of an access itself are not
/// kept: what happens before is in each domain that both share, up to its own level.
#[derive(Clone, Debug, Default)]
pub(super) struct OrderingState {
    pub before: HappensBeforeClock,
    available: Option<Rc<AvailabilityClocks>>,
}

impl OrderingState {
    fn available_mut(&mut self) -> &mut AvailabilityClocks {
        Rc::make_mut(self.available.get_or_insert_with(Rc::default))
    }

    /// Takes what another one knows whose domains it shares from a level on.
    pub fn join_from(&mut self, mine: u32, other: &OrderingState, theirs: u32, nearest: usize) {
        self.before.join_from(mine, &other.before, theirs);
        self.join_available(mine, other, theirs, nearest);
    }

    /// Of that how far writes have come.
    pub fn join_available(&mut self, mine: u32, other: &OrderingState, theirs: u32, nearest: usize) {
        let Some(brought) = &other.available else { return };
        match &self.available {
            Some(known) if Rc::ptr_eq(known, brought) => return,
            None if nearest <= SUBGROUP => {
                self.available = Some(brought.clone());
                return;
            }
            _ => {}
        }
        let mut joins = JoinCache::default();
        for (known, others) in self.available_mut().iter_mut().zip(brought.iter()) {
            for at in nearest.max(SUBGROUP)..=DEVICE {
                joins.join_cached(&mut known[at - 1], mine, &others[at - 1], theirs);
            }
        }
    }

    /// Whether it has all that another one of its subgroup has.
    fn is_at_least(&self, other: &OrderingState) -> bool {
        let brought = match (&self.available, &other.available) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(mine), Some(theirs)) => {
                let mut both = mine.iter().flatten().zip(theirs.iter().flatten());
                Rc::ptr_eq(mine, theirs) || both.all(|(mine, theirs)| mine.is_at_least(theirs))
            }
        };
        brought && self.before.is_at_least(&other.before)
    }

    /// An availability operation: what is in narrower domains comes into the wider ones, up to a level. That may be the next link of
    /// a chain. The invocation's own writes do up to a time, if one is given.
    pub fn make_available(&mut self, around: &DomainExtents, level: usize, time: Option<u32>) {
        let (mut joins, workgroup) = (JoinCache::default(), around.workgroup);
        let mut itself = HappensBeforeClock::default();
        time.into_iter().for_each(|time| itself.advance_invocation(around.invocation, time));
        for own in 0..level {
            let mut narrower = self.before.restrict_to_domain(own, around);
            joins.join_cached(&mut narrower, workgroup, &itself, workgroup);
            let brought = self.available_mut();
            for at in SUBGROUP..=level {
                let here = &mut brought[own][at - 1];
                if at > own {
                    joins.join_cached(here, workgroup, &narrower, workgroup);
                }
                joins.join_cached(&mut narrower, workgroup, here, workgroup);
            }
        }
    }

    /// Of the invocations of a workgroup that meet in an availability operation each makes its own writes available.
    pub fn publish_workgroup(&mut self, level: usize, epoch: u32) {
        for own in 0..level {
            for at in WORKGROUP.max(own + 1)..=level {
                self.available_mut()[own][at - 1].barrier_epoch = epoch;
            }
        }
    }

    /// The same for the domain of a subgroup.
    pub fn publish_subgroup(&mut self, first: u32, epoch: u32) {
        self.available_mut()[0][SUBGROUP - 1].advance_subgroup(first, epoch);
    }
}

/// What an invocation knows of one class of memory.
#[derive(Clone, Debug, Default)]
pub(super) struct HappensBeforeView {
    pub ordering: OrderingState,
    /// What of it visibility operations showed to the invocation: writes as those of [`Brought`].
    visible: Option<Rc<[HappensBeforeClock; DEVICE + 1]>>,
}

impl HappensBeforeView {
    /// A visibility operation: what is in wider domains comes into the narrower ones, from a level on. That may be a link of a chain.
    pub fn make_visible(&mut self, around: &DomainExtents, level: usize) {
        let (mut joins, mine) = (JoinCache::default(), around.workgroup);
        for own in 0..=DEVICE {
            let base = own.min(level);
            let by_itself = self.ordering.before.restrict_to_domain(base, around);
            let mut wider = HappensBeforeClock::default();
            for at in (0..=level).rev() {
                let here = match at {
                    0 => &mut Rc::make_mut(self.visible.get_or_insert_with(Rc::default))[own],
                    _ => &mut self.ordering.available_mut()[own][at - 1],
                };
                joins.join_cached(here, mine, &wider, mine);
                wider = here.clone();
                if at == base {
                    joins.join_cached(&mut wider, mine, &by_itself, mine);
                }
            }
        }
    }

    /// Whether a write is available to an invocation of a workgroup, in a domain that both share from a level on. `known` is whether it
    /// happens before, and `own` the level of its own operation.
    pub fn is_available(
        &self,
        workgroup: u32,
        write: &Epoch,
        known: bool,
        own: usize,
        nearest: usize,
    ) -> bool {
        let knows = |at: usize| {
            self.ordering
                .available
                .as_ref()
                .is_some_and(|all| all[own][at - 1].includes_epoch(workgroup, write))
        };
        known && nearest <= own || (nearest.max(SUBGROUP)..=DEVICE).any(knows)
    }

    /// Whether it is visible as well, to a read with an operation of its own of a level.
    pub fn is_visible(
        &self,
        workgroup: u32,
        write: &Epoch,
        known: bool,
        (own, reads): (usize, usize),
        nearest: usize,
    ) -> bool {
        let knows = |at: usize| {
            self.ordering
                .available
                .as_ref()
                .is_some_and(|all| all[own][at - 1].includes_epoch(workgroup, write))
        };
        known && nearest <= own.min(reads)
            || self.visible.as_ref().is_some_and(|shown| shown[own].includes_epoch(workgroup, write))
            || (SUBGROUP..=reads).any(knows)
    }

    /// Whether both are told to be the same; where neither is made of the other, they may be so without that.
    pub fn ptr_eq(&self, other: &HappensBeforeView) -> bool {
        let (mine, theirs) = (&self.ordering, &other.ordering);
        mine.before.ptr_eq(&theirs.before)
            && ptr_eq_options(mine.available.as_ref(), theirs.available.as_ref())
            && ptr_eq_options(self.visible.as_ref(), other.visible.as_ref())
    }
}

/// What a release gives to whoever acquires.
#[derive(Clone, Debug)]
pub(super) struct ReleaseMessage {
    pub invocation: u32,
    /// Of the invocation, by what it had released.
    pub time: u32,
    /// Whether it is the atomic's own release, not that of a barrier before it.
    pub from_atomic: bool,
    pub workgroup: u32,
    pub subgroup: u32,
    pub scope: Scope,
    pub classes: StorageClassSet,
    /// Of each class.
    pub ordering: Rc<[OrderingState; 3]>,
}

impl ReleaseMessage {
    /// Whether it gives all that another one of its subgroup gives, of the same scope and classes.
    pub fn is_at_least(&self, other: &ReleaseMessage) -> bool {
        let mut both = self.ordering.iter().zip(other.ordering.iter());
        both.all(|(mine, theirs)| mine.is_at_least(theirs))
    }
}

/// What a write carries for whoever reads it: of the releases of a subgroup, several may be told as one.
pub(super) type ReleaseSet = Rc<[Rc<ReleaseMessage>]>;

#[cfg(test)]
mod tests {
    use super::{Epoch, HappensBeforeClock, JoinCache};

    /// As many barriers of another workgroup as of the own are something else.
    #[test]
    fn barrier_epochs_are_compared_only_within_one_workgroup() {
        let after_one = HappensBeforeClock { barrier_epoch: 1, ..HappensBeforeClock::default() };
        let mut mine = after_one.clone();
        JoinCache::default().join_cached(&mut mine, 0, &after_one, 1);
        let theirs = Epoch { invocation: 9, workgroup: 1, time: 1, barrier_epoch: 0, subgroup_start: 8 };
        assert!(mine.includes_epoch(0, &theirs) && !after_one.includes_epoch(0, &theirs));
    }
}
