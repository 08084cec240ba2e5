//! Happens-before, availability and visibility, tracked for each storage class.
//!
//! Vector clocks in the style of FastTrack (<https://doi.org/10.1145/1542476.1542490>): an access is an
//! [`Epoch`], and a view holds for every invocation the time up to which its accesses happen before. A
//! barrier of a whole workgroup advances one counter, the barrier epoch, instead of every component.
//!
//! The Vulkan memory model orders a write and a later access only if the write is also made available and
//! visible ("Memory Model", sections "Availability and Visibility" and "Location-Ordered"). So a view also
//! holds, for each domain (subgroup, workgroup, device), the writes that reached it.
//!
//! The relation is exact for the walked schedule. Orders that only other schedules establish are not tracked.

use std::ops::{Index, IndexMut};
use std::rc::Rc;

use litmus::{Scope, StorageClass, StorageClassSet};

use super::vector_clock::VectorClock;

/// The storage classes that have separate clocks.
pub const CLASSES: StorageClassSet = StorageClassSet::GLOBAL.with(StorageClass::Workgroup);

/// A value for each of [`CLASSES`].
#[derive(Clone, Debug, Default)]
pub struct ClassMap<T>(pub [T; 3]);

impl<T> ClassMap<T> {
    fn index_of(class: StorageClass) -> usize {
        match class {
            // The reader treats outputs that invocations share as workgroup memory.
            StorageClass::Buffer | StorageClass::Output => 0,
            StorageClass::Workgroup => 1,
            StorageClass::Image => 2,
        }
    }
}

impl<T> Index<StorageClass> for ClassMap<T> {
    type Output = T;

    fn index(&self, class: StorageClass) -> &T {
        &self.0[ClassMap::<T>::index_of(class)]
    }
}

impl<T> IndexMut<StorageClass> for ClassMap<T> {
    fn index_mut(&mut self, class: StorageClass) -> &mut T {
        &mut self.0[ClassMap::<T>::index_of(class)]
    }
}

/// The FastTrack epoch of an access: an invocation and its time.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// The number of the invocation in the grid.
    pub invocation: u32,
    /// The number of its workgroup.
    pub workgroup: u32,
    /// The invocation's clock, which advances at its releases.
    pub time: u32,
    /// Number of workgroup barriers for the class that precede the access.
    pub barrier_epoch: u32,
    /// The first invocation of the subgroup.
    pub subgroup_start: u32,
}

#[derive(Clone, Debug, Default)]
struct ClockComponents {
    /// For each invocation, the time up to which its accesses are included.
    invocations: VectorClock,
    /// For each workgroup, the barrier epoch before which all its accesses are included.
    workgroups: VectorClock,
    /// The same for each subgroup, indexed by its first invocation.
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

    /// Returns true if both share their allocations; false proves nothing.
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

/// The accesses of all invocations that happen before a point.
#[derive(Clone, Debug, Default)]
pub struct HappensBeforeClock {
    /// Barrier epoch of the invocation's workgroup before which all its accesses are included.
    pub barrier_epoch: u32,
    components: Option<Rc<ClockComponents>>,
}

impl HappensBeforeClock {
    /// Returns true if the access happens before, seen from a workgroup.
    pub fn includes_epoch(&self, workgroup: u32, epoch: &Epoch) -> bool {
        // A barrier of the same workgroup includes everything before it, without a component for
        // each invocation.
        if epoch.workgroup == workgroup && epoch.barrier_epoch < self.barrier_epoch {
            return true;
        }
        let Some(others) = &self.components else { return false };
        others.invocations.timestamp_of(epoch.invocation) >= epoch.time
            // Strictly greater: an access has the number of barriers before it, and the barrier
            // after it has the next number.
            || others.workgroups.timestamp_of(epoch.workgroup) > epoch.barrier_epoch
            || others.subgroups.timestamp_of(epoch.subgroup_start) > epoch.barrier_epoch
    }

    fn is_empty(&self) -> bool {
        self.barrier_epoch == 0 && self.components.is_none()
    }

    /// Returns true if both share one allocation; false proves nothing.
    fn ptr_eq(&self, other: &HappensBeforeClock) -> bool {
        self.barrier_epoch == other.barrier_epoch
            && ptr_eq_options(self.components.as_ref(), other.components.as_ref())
    }

    /// Returns true if it includes everything that a clock of the same workgroup includes.
    fn is_at_least(&self, other: &HappensBeforeClock) -> bool {
        self.barrier_epoch >= other.barrier_epoch
            && match (&self.components, &other.components) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(mine), Some(theirs)) => Rc::ptr_eq(mine, theirs) || mine.is_at_least(theirs),
            }
    }

    /// Joins the clock of workgroup `other_workgroup` into this clock of `own_workgroup`.
    pub fn join_from(&mut self, own_workgroup: u32, other: &HappensBeforeClock, other_workgroup: u32) {
        // Barrier epochs count the barriers of one workgroup, so they compare only within it.
        if own_workgroup == other_workgroup {
            self.barrier_epoch = self.barrier_epoch.max(other.barrier_epoch);
        }
        match (&mut self.components, &other.components) {
            (_, None) => {}
            (Some(known), Some(others)) if Rc::ptr_eq(known, others) => {}
            (Some(known), Some(others)) => {
                let both = known.joined_with(others);
                // Keeps one of the allocations where possible, so that `ptr_eq` recognizes equal
                // clocks later.
                match () {
                    () if both.ptr_eq(known) => {}
                    () if both.ptr_eq(others) => *known = others.clone(),
                    () => *known = Rc::new(both),
                }
            }
            (known, Some(others)) => *known = Some(others.clone()),
        }
        // Seen from another workgroup, the barrier epoch is an ordinary component.
        if own_workgroup != other_workgroup && other.barrier_epoch > 0 {
            let known = self.components.get_or_insert_with(Rc::default);
            if known.workgroups.timestamp_of(other_workgroup) < other.barrier_epoch {
                Rc::make_mut(known).workgroups.advance_to(other_workgroup, other.barrier_epoch);
            }
        }
        // And conversely: the other side may include later barriers of this workgroup than this clock.
        if own_workgroup != other_workgroup
            && let Some(others) = &self.components
        {
            self.barrier_epoch = self.barrier_epoch.max(others.workgroups.timestamp_of(own_workgroup));
        }
    }

    /// Restricts the clock to the invocations that share the domain of `level`.
    fn restrict_to_domain(&self, level: usize, extents: &DomainExtents) -> HappensBeforeClock {
        let (first, end) = match level {
            0 => return HappensBeforeClock::default(),
            SUBGROUP => extents.subgroup_range,
            WORKGROUP => extents.workgroup_range,
            _ => return self.clone(),
        };
        // A domain of one invocation needs no components: its time and the barrier epoch decide.
        let others = self.components.as_ref().filter(|_| end - first > 1).map(|others| ClockComponents {
            invocations: others.invocations.restrict_to(first, end),
            // The domain lies within the invocation's workgroup, whose barriers `barrier_epoch` counts.
            workgroups: VectorClock::default(),
            subgroups: others.subgroups.restrict_to(first, end),
        });
        let others = others.filter(|others| !others.is_empty()).map(Rc::new);
        let mut clock = HappensBeforeClock { barrier_epoch: 0, components: others };
        match level {
            WORKGROUP => clock.barrier_epoch = self.barrier_epoch,
            // The barrier epoch covers the whole workgroup. Of that, only the own subgroup is in
            // the domain.
            _ if self.barrier_epoch > 0 => clock.advance_subgroup(first, self.barrier_epoch),
            _ => {}
        }
        clock
    }

    /// Includes everything that a subgroup did before barrier epoch `epoch`.
    fn advance_subgroup(&mut self, first: u32, epoch: u32) {
        Rc::make_mut(self.components.get_or_insert_with(Rc::default)).subgroups.advance_to(first, epoch);
    }

    /// Includes an invocation's accesses up to `time`.
    pub fn advance_invocation(&mut self, invocation: u32, time: u32) {
        Rc::make_mut(self.components.get_or_insert_with(Rc::default))
            .invocations
            .advance_to(invocation, time);
    }
}

/// A small cache of joins: most clocks that two workgroups exchange are the same.
#[derive(Default)]
pub struct JoinCache([Option<CachedJoin>; 4], usize);

struct CachedJoin {
    left: HappensBeforeClock,
    right: HappensBeforeClock,
    joined: HappensBeforeClock,
}

impl JoinCache {
    /// Like [`HappensBeforeClock::join_from`], reusing an earlier result for the same pair.
    pub fn join_cached(
        &mut self,
        clock: &mut HappensBeforeClock,
        own_workgroup: u32,
        other_clock: &HappensBeforeClock,
        other_workgroup: u32,
    ) {
        // Equal barrier epochs of different workgroups count different barriers, so pointer equality is not
        // enough.
        if other_clock.is_empty() || own_workgroup == other_workgroup && clock.ptr_eq(other_clock) {
            return;
        }
        let cached =
            self.0.iter().flatten().find(|join| join.left.ptr_eq(clock) && join.right.ptr_eq(other_clock));
        if let Some(cached) = cached {
            *clock = cached.joined.clone();
            return;
        }
        let before = clock.clone();
        clock.join_from(own_workgroup, other_clock, other_workgroup);
        let last = self.1 % self.0.len();
        self.0[last] = Some(CachedJoin { left: before, right: other_clock.clone(), joined: clock.clone() });
        self.1 += 1;
    }
}

/// Memory domains from narrow to wide: invocation (0), subgroup, workgroup, device.
const SUBGROUP: usize = 1;
const WORKGROUP: usize = 2;
const DEVICE: usize = 3;

/// Returns the level of the domain that a scope names.
pub fn domain_level(scope: Scope) -> usize {
    match scope {
        Scope::Invocation => 0,
        Scope::Subgroup => SUBGROUP,
        Scope::Workgroup => WORKGROUP,
        Scope::ShaderCall
        | Scope::FragmentInterlock
        | Scope::QueueFamily
        | Scope::Device
        | Scope::CrossDevice => DEVICE,
    }
}

/// Returns the narrowest domain that two invocations share.
pub fn nearest_shared_domain(one: (u32, u32, u32), other: (u32, u32, u32)) -> usize {
    match (one.0 == other.0, one.1 == other.1, one.2 == other.2) {
        (true, ..) => 0,
        (_, true, true) => SUBGROUP,
        (_, true, _) => WORKGROUP,
        _ => DEVICE,
    }
}

/// Returns true if a scope instance of `one` includes `other`.
pub fn scope_includes(scope: Scope, one: (u32, u32, u32), other: (u32, u32, u32)) -> bool {
    domain_level(scope) >= nearest_shared_domain(one, other)
}

/// The ranges of invocations that share a domain with one invocation.
#[derive(Clone, Copy, Debug)]
pub struct DomainExtents {
    /// The number of the invocation in the grid.
    pub invocation: u32,
    /// The number of its workgroup.
    pub workgroup: u32,
    /// The invocations of its subgroup, as a half-open range.
    pub subgroup_range: (u32, u32),
    /// The invocations of its workgroup, as a half-open range.
    pub workgroup_range: (u32, u32),
}

/// Available writes, by the level of the availability operation that they carry and by the domain they reached.
type AvailabilityClocks = [[HappensBeforeClock; DEVICE]; DEVICE + 1];

/// Accesses that happen before a point, and the domains that barriers and atomics made them available in.
///
/// The availability operation of an access itself is not stored: a write that happens before is available in
/// every shared domain up to its own level.
#[derive(Clone, Debug, Default)]
pub struct OrderingState {
    /// The accesses that happen before.
    pub before: HappensBeforeClock,
    available: Option<Rc<AvailabilityClocks>>,
}

impl OrderingState {
    /// Returns true if a write is available in the domain of a level.
    #[inline]
    fn is_available_in(&self, level: usize, workgroup: u32, write: &Epoch, own_level: usize) -> bool {
        let available = self.available.as_ref();
        available.is_some_and(|all| all[own_level][level - 1].includes_epoch(workgroup, write))
    }

    fn available_mut(&mut self) -> &mut AvailabilityClocks {
        Rc::make_mut(self.available.get_or_insert_with(Rc::default))
    }

    /// Joins the state of an invocation that shares domains from level `nearest` on.
    pub fn join_from(
        &mut self,
        own_workgroup: u32,
        other: &OrderingState,
        other_workgroup: u32,
        nearest: usize,
    ) {
        self.before.join_from(own_workgroup, &other.before, other_workgroup);
        self.join_available(own_workgroup, other, other_workgroup, nearest);
    }

    /// Joins only the availability part.
    pub fn join_available(
        &mut self,
        own_workgroup: u32,
        other: &OrderingState,
        other_workgroup: u32,
        nearest: usize,
    ) {
        let Some(other_available) = &other.available else { return };
        match &self.available {
            Some(known) if Rc::ptr_eq(known, other_available) => return,
            // Both share every domain, so the whole state applies and is shared.
            None if nearest <= SUBGROUP => {
                self.available = Some(other_available.clone());
                return;
            }
            _ => {}
        }
        let mut joins = JoinCache::default();
        for (known, others) in self.available_mut().iter_mut().zip(other_available.iter()) {
            // A write that is available in a domain without both invocations need not be available to this
            // one.
            for at in nearest.max(SUBGROUP)..=DEVICE {
                joins.join_cached(&mut known[at - 1], own_workgroup, &others[at - 1], other_workgroup);
            }
        }
    }

    /// Returns true if both share their allocations; false proves nothing.
    pub fn ptr_eq(&self, other: &OrderingState) -> bool {
        self.before.ptr_eq(&other.before) && ptr_eq_options(self.available.as_ref(), other.available.as_ref())
    }

    /// Returns true if it includes everything that a state of the same subgroup includes.
    fn is_at_least(&self, other: &OrderingState) -> bool {
        let includes_available = match (&self.available, &other.available) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(mine), Some(theirs)) => {
                let mut both = mine.iter().flatten().zip(theirs.iter().flatten());
                Rc::ptr_eq(mine, theirs) || both.all(|(mine, theirs)| mine.is_at_least(theirs))
            }
        };
        includes_available && self.before.is_at_least(&other.before)
    }

    /// Performs an availability operation: propagates writes from narrower domains up to `level`.
    ///
    /// The operation may continue an availability chain. If `time` is given, the invocation's own writes up
    /// to it become available.
    pub fn make_available(&mut self, extents: &DomainExtents, level: usize, time: Option<u32>) {
        let (mut joins, workgroup) = (JoinCache::default(), extents.workgroup);
        let mut itself = HappensBeforeClock::default();
        time.into_iter().for_each(|time| itself.advance_invocation(extents.invocation, time));
        // A write with an availability operation at `own_level` is available in that domain once it happens
        // before. The operation extends it from there.
        for own_level in 0..level {
            let mut narrower = self.before.restrict_to_domain(own_level, extents);
            joins.join_cached(&mut narrower, workgroup, &itself, workgroup);
            let available_clocks = self.available_mut();
            for at in SUBGROUP..=level {
                let here = &mut available_clocks[own_level][at - 1];
                if at > own_level {
                    joins.join_cached(here, workgroup, &narrower, workgroup);
                }
                // What is already available here continues to wider domains: an availability chain
                // (VK-AVC-01).
                joins.join_cached(&mut narrower, workgroup, here, workgroup);
            }
        }
    }

    /// Makes available the writes of all invocations that meet at a workgroup barrier.
    pub fn publish_workgroup(&mut self, level: usize, epoch: u32) {
        // Writes whose own operation reaches at least `level` gain nothing.
        for own_level in 0..level {
            for at in WORKGROUP.max(own_level + 1)..=level {
                self.available_mut()[own_level][at - 1].barrier_epoch = epoch;
            }
        }
    }

    /// Does the same in the domain of a subgroup.
    pub fn publish_subgroup(&mut self, first: u32, epoch: u32) {
        self.available_mut()[0][SUBGROUP - 1].advance_subgroup(first, epoch);
    }
}

/// The view that one invocation has of one storage class.
#[derive(Clone, Debug, Default)]
pub struct HappensBeforeView {
    /// The accesses that happen before, and the available writes.
    pub ordering: OrderingState,
    /// Writes that visibility operations made visible to the invocation, indexed as in
    /// [`AvailabilityClocks`].
    visible: Option<Rc<[HappensBeforeClock; DEVICE + 1]>>,
}

impl HappensBeforeView {
    /// Performs a visibility operation: propagates writes from domains up to `level` to the invocation.
    pub fn make_visible(&mut self, extents: &DomainExtents, level: usize) {
        let (mut joins, own_workgroup) = (JoinCache::default(), extents.workgroup);
        for own_level in 0..=DEVICE {
            // The write's own operation and this visibility operation meet in the narrower of their
            // domains.
            let base = own_level.min(level);
            let by_itself = self.ordering.before.restrict_to_domain(base, extents);
            let mut wider = HappensBeforeClock::default();
            // From wide to narrow: writes that are available in a domain become available in the domains
            // inside it, and finally visible to the invocation.
            for at in (0..=level).rev() {
                let here = match at {
                    0 => &mut Rc::make_mut(self.visible.get_or_insert_with(Rc::default))[own_level],
                    _ => &mut self.ordering.available_mut()[own_level][at - 1],
                };
                joins.join_cached(here, own_workgroup, &wider, own_workgroup);
                wider = here.clone();
                if at == base {
                    joins.join_cached(&mut wider, own_workgroup, &by_itself, own_workgroup);
                }
            }
        }
    }

    /// Returns true if a write is available in a domain that both invocations share.
    ///
    /// `happens_before` is true if the write happens before; `own_level` is that of its availability operation.
    pub fn is_available(
        &self,
        workgroup: u32,
        write: &Epoch,
        happens_before: bool,
        own_level: usize,
        nearest: usize,
    ) -> bool {
        let mut wider = nearest.max(SUBGROUP)..=DEVICE;
        happens_before && nearest <= own_level
            || wider.any(|level| self.ordering.is_available_in(level, workgroup, write, own_level))
    }

    /// Returns true if the write is also visible to a read whose own visibility operation has level `reads`.
    pub fn is_visible(
        &self,
        workgroup: u32,
        write: &Epoch,
        happens_before: bool,
        own_level: usize,
        reads: usize,
        nearest: usize,
    ) -> bool {
        let mut narrower = SUBGROUP..=reads;
        happens_before && nearest <= own_level.min(reads)
            || self
                .visible
                .as_ref()
                .is_some_and(|visible_clocks| visible_clocks[own_level].includes_epoch(workgroup, write))
            || narrower.any(|level| self.ordering.is_available_in(level, workgroup, write, own_level))
    }

    /// Returns true if both share their allocations; false proves nothing.
    pub fn ptr_eq(&self, other: &HappensBeforeView) -> bool {
        self.ordering.ptr_eq(&other.ordering) && ptr_eq_options(self.visible.as_ref(), other.visible.as_ref())
    }
}

/// A release: the state that an acquire joins.
#[derive(Clone, Debug)]
pub struct ReleaseMessage {
    /// The number of the releasing invocation.
    pub invocation: u32,
    /// The releasing invocation's clock.
    pub time: u32,
    /// True for the release of the atomic itself, false for an earlier fence's.
    pub is_from_atomic: bool,
    /// The number of its workgroup.
    pub workgroup: u32,
    /// The number of its subgroup.
    pub subgroup: u32,
    /// The scope of the release.
    pub scope: Scope,
    /// The storage classes whose accesses it orders.
    pub classes: StorageClassSet,
    /// The state for each class.
    pub ordering: Rc<ClassMap<OrderingState>>,
}

impl ReleaseMessage {
    /// Returns true if it includes another release of the same subgroup, scope and classes.
    pub fn is_at_least(&self, other: &ReleaseMessage) -> bool {
        let mut both = self.ordering.0.iter().zip(&other.ordering.0);
        both.all(|(mine, theirs)| mine.is_at_least(theirs))
    }
}

/// The releases that a store carries; those of one subgroup may be merged.
pub type ReleaseSet = Rc<[Rc<ReleaseMessage>]>;
