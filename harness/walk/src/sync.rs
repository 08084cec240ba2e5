//! Synchronization: releases and acquires of atomics, fences and control barriers.
//!
//! A release copies the invocation's ordering state, an acquire joins it if each scope includes the other
//! invocation ("Synchronizes-With" of the Vulkan memory model). Fences follow the C++ rule: a release fence
//! attaches to later atomics, an acquire fence takes what earlier atomics read. Releases of one subgroup with
//! equal scope and classes may be merged, which bounds memory.

use std::rc::Rc;

use litmus::{Order, Scope, Semantics, StorageClass};
use spirv_reader::{BarrierPart, SpirvOperation};

use super::happens_before::{
    CLASSES, ClassMap, DomainExtents, HappensBeforeView, OrderingState, ReleaseMessage, ReleaseSet,
    domain_level, nearest_shared_domain, scope_includes,
};
use super::state::{BarrierSemantics, Invocation, WorkgroupState};

/// Placeholder for the releasing invocation of a merged release.
const MERGED_INVOCATION: u32 = u32::MAX;
/// Upper bound on the separate releases of one write; more are merged by subgroup.
const MAX_SEPARATE_RELEASES: usize = 8;

impl Invocation {
    pub fn domain_ids(&self) -> (u32, u32, u32) {
        (self.number, self.identity.workgroup_index, self.subgroup)
    }

    /// Returns the time of an access that is executed now.
    pub fn current_time(&self) -> u32 {
        // The next release advances the clock to this time and thereby includes the access.
        self.clock + 1
    }

    /// Advances the clock, so that earlier and later accesses differ.
    pub fn start_epoch(&mut self) {
        self.clock += 1;
        self.last_release = self.clock;
    }

    fn domain_extents(&self) -> DomainExtents {
        let (first, all) = (self.number - self.lane, self.number - self.identity.local_index);
        let end = all + self.numbering.workgroup_size;
        DomainExtents {
            invocation: self.number,
            workgroup: self.identity.workgroup_index,
            subgroup_range: (first, end.min(first + self.numbering.subgroup_size)),
            workgroup_range: (all, end),
        }
    }

    /// Performs the availability operations that precede an instruction.
    ///
    /// `includes_own` is false for a barrier of the whole workgroup, whose writes are published together.
    pub fn make_available(&mut self, scope: Scope, semantics: Semantics, includes_own: bool) {
        if semantics.make_available {
            if includes_own {
                // Writes after the operation must not count as made available by it.
                self.start_epoch();
            }
            let (around, time) = (self.domain_extents(), includes_own.then_some(self.clock));
            for class in CLASSES.intersection(semantics.classes).iter() {
                self.views[class].ordering.make_available(&around, domain_level(scope), time);
            }
        }
    }

    /// Performs the visibility operations that follow an instruction.
    pub fn make_visible(&mut self, scope: Scope, semantics: Semantics) {
        if semantics.make_visible {
            let extents = self.domain_extents();
            for class in CLASSES.intersection(semantics.classes).iter() {
                self.views[class].make_visible(&extents, domain_level(scope));
            }
        }
    }

    /// Returns a release of everything before this point.
    pub fn release(&mut self, scope: Scope, semantics: Semantics) -> Rc<ReleaseMessage> {
        self.start_epoch();
        let mut known = ClassMap(self.views.0.each_ref().map(|view| view.ordering.clone()));
        // Classes outside the semantics are never acquired from this release, so their state needs no own
        // accesses.
        for class in CLASSES.intersection(semantics.classes).iter() {
            known[class].before.advance_invocation(self.number, self.clock);
        }
        let (invocation, workgroup, subgroup) = self.domain_ids();
        let (classes, time, known) = (semantics.classes, self.clock, Rc::new(known));
        Rc::new(ReleaseMessage {
            invocation,
            time,
            is_from_atomic: false,
            workgroup,
            subgroup,
            scope,
            classes,
            ordering: known,
        })
    }

    /// Joins a release if the scopes of both sides include each other.
    pub fn acquire(&mut self, message: &ReleaseMessage, scope: Scope, semantics: Semantics) {
        let (own_ids, sender_ids) =
            (self.domain_ids(), (message.invocation, message.workgroup, message.subgroup));
        if !scope_includes(scope, own_ids, sender_ids) || !scope_includes(message.scope, own_ids, sender_ids)
        {
            return;
        }
        let nearest_level = nearest_shared_domain(own_ids, sender_ids);
        for class in CLASSES.intersection(semantics.classes).intersection(message.classes).iter() {
            self.views[class].ordering.join_from(
                own_ids.1,
                &message.ordering[class],
                sender_ids.1,
                nearest_level,
            );
        }
    }

    /// Executes a memory barrier.
    pub fn execute_fence(&mut self, scope: Scope, semantics: Semantics) {
        self.make_available(scope, semantics, true);
        self.acquire_and_release(scope, semantics);
        self.make_visible(scope, semantics);
    }

    /// Acquires for the preceding atomics and releases for the following ones.
    fn acquire_and_release(&mut self, scope: Scope, semantics: Semantics) {
        if semantics.order.acquires() {
            self.acquire_pending(scope, semantics);
        }
        if semantics.order.releases() {
            let message = self.release(scope, semantics);
            // A later fence of the same scope and classes subsumes an earlier one.
            self.pending_releases
                .retain(|earlier| earlier.scope != scope || earlier.classes != semantics.classes);
            self.pending_releases.push(message);
        }
    }

    /// Acquires what the preceding atomics read.
    fn acquire_pending(&mut self, scope: Scope, semantics: Semantics) {
        for message in self.pending_acquires.clone() {
            self.acquire(&message, scope, semantics);
        }
    }

    /// Returns the releases of an atomic write: its own and those of earlier fences.
    pub fn releases_of_write(
        &mut self,
        class: StorageClass,
        scope: Scope,
        semantics: Semantics,
    ) -> Vec<Rc<ReleaseMessage>> {
        let mut all: Vec<Rc<ReleaseMessage>> =
            self.pending_releases.iter().filter(|message| message.classes.contains(class)).cloned().collect();
        if semantics.order.releases() {
            all.push(Rc::new(ReleaseMessage {
                is_from_atomic: true,
                ..(*self.release(scope, semantics)).clone()
            }));
        }
        all
    }

    /// Makes an atomic's earlier writes to the same location visible.
    ///
    /// An acquire from an atomic at the same location orders the location itself, independent of the storage
    /// classes of the semantics.
    pub fn acquire_self_visible(
        &mut self,
        place: (u32, u32, u64),
        messages: &[Rc<ReleaseMessage>],
        scope: Scope,
        semantics: Semantics,
    ) {
        let linked = |message: &&Rc<ReleaseMessage>| {
            let common = CLASSES.intersection(semantics.classes).intersects(message.classes);
            message.is_from_atomic && semantics.order.acquires() && common
        };
        for message in messages.iter().filter(linked) {
            let sender_ids = (message.invocation, message.workgroup, message.subgroup);
            // Each of the two scopes must include both invocations.
            if scope_includes(scope, self.domain_ids(), sender_ids)
                && scope_includes(message.scope, self.domain_ids(), sender_ids)
            {
                let visible_writes = self.self_visible.entry(place).or_default();
                let time = visible_writes.entry(message.invocation).or_default();
                *time = (*time).max(message.time);
            }
        }
    }

    /// Performs the acquire of an atomic read.
    pub fn acquire_from_write(&mut self, messages: &ReleaseSet, scope: Scope, semantics: Semantics) {
        let acquires = semantics.order.acquires();
        // A spin loop reads the same release set repeatedly.
        if !acquires && self.last_received.as_ref().is_some_and(|known| Rc::ptr_eq(known, messages)) {
            return;
        }
        if acquires {
            messages.iter().for_each(|message| self.acquire(message, scope, semantics));
        }
        self.add_pending_acquires(
            // Own releases order nothing that program order does not.
            messages.iter().filter(|message| message.invocation != self.number).cloned().collect(),
        );
        self.last_received = Some(messages.clone());
    }

    /// Returns the releases of an arrival: its own and those of earlier fences.
    pub fn arrive_at_split_barrier(&mut self, barrier: BarrierSemantics) -> Vec<Rc<ReleaseMessage>> {
        let mut all = self.pending_releases.clone();
        if barrier.semantics.order.releases() {
            self.execute_fence(barrier.scope, barrier.semantics);
            all.extend(self.pending_releases.last().cloned());
        }
        all
    }

    /// Completes the wait of a split barrier and acquires what the arrivals released.
    pub fn finish_split_barrier(&mut self, messages: &[Rc<ReleaseMessage>], barrier: BarrierSemantics) {
        let own_subgroup = self.subgroup;
        self.make_available(barrier.scope, barrier.semantics, true);
        let reaches = |message: &&Rc<ReleaseMessage>| {
            message.scope != Scope::Subgroup || message.subgroup == own_subgroup
        };
        let messages: Vec<Rc<ReleaseMessage>> = messages.iter().filter(reaches).cloned().collect();
        if barrier.semantics.order.acquires() {
            messages.iter().for_each(|message| self.acquire(message, barrier.scope, barrier.semantics));
        }
        self.add_pending_acquires(messages);
        if barrier.semantics.order.acquires() {
            self.acquire_and_release(barrier.scope, barrier.semantics);
        }
        self.make_visible(barrier.scope, barrier.semantics);
    }

    /// Stores releases that a later acquire fence may take.
    fn add_pending_acquires(&mut self, messages: Vec<Rc<ReleaseMessage>>) {
        // Beyond the limit, releases of one subgroup with equal scope and classes become one, so
        // the length depends on the number of subgroups only.
        if self.pending_acquires.len() + messages.len() > MAX_SEPARATE_RELEASES {
            if !self.acquires_are_merged {
                self.pending_acquires = group_releases(std::mem::take(&mut self.pending_acquires));
                self.acquires_are_merged = true;
            }
            return group_releases(messages)
                .into_iter()
                .for_each(|message| merge_into_groups(&mut self.pending_acquires, message));
        }
        self.acquires_are_merged &= messages.is_empty();
        for message in messages {
            if !self.pending_acquires.iter().any(|known| Rc::ptr_eq(known, &message)) {
                self.pending_acquires.push(message);
            }
        }
    }
}

/// Synchronizes the invocations `together` at a control barrier; `is_whole_workgroup` if none is missing.
pub(super) fn synchronize_at_barrier(
    workgroup: &mut WorkgroupState,
    together: &[usize],
    barrier: BarrierSemantics,
    is_whole_workgroup: bool,
    has_fine_ordering: bool,
) {
    let BarrierSemantics { scope, semantics } = barrier;
    let both = semantics.order.releases() && semantics.order.acquires();
    let wide = !matches!(scope, Scope::Invocation | Scope::Subgroup);
    // An earlier release fence adds nothing to the barrier if the barrier releases all of its
    // classes.
    let covered = |message: &Rc<ReleaseMessage>| {
        let released = CLASSES.intersection(message.classes);
        released.intersection(semantics.classes) == released
    };
    let plain =
        together.iter().all(|index| workgroup.invocations[*index].pending_releases.iter().all(covered));
    // If every invocation both releases to and acquires from all others, all end in one joined
    // state, and one counter represents it.
    let of_all = both && is_whole_workgroup && wide;
    for index in together {
        workgroup.invocations[*index].make_available(scope, semantics, !of_all);
    }
    if both {
        // What a member acquires for its earlier atomics is before the barrier of the others too: a barrier is one operation
        // that acquires and releases. Its availability operation was before.
        for index in together {
            workgroup.invocations[*index].acquire_pending(scope, semantics);
        }
    }
    if of_all {
        join_workgroup(workgroup, together, barrier);
        if !plain {
            exchange_releases(workgroup, together, None);
        }
    } else {
        let own = (semantics.order != Order::Relaxed).then_some(barrier);
        exchange_releases(workgroup, together, own);
    }
    // Lanes with the same view before a visibility operation have the same view after it.
    let mut last: Option<(u32, ClassMap<HappensBeforeView>, ClassMap<HappensBeforeView>)> = None;
    for index in together {
        let invocation = &mut workgroup.invocations[*index];
        // A control barrier with semantics is also a memory barrier.
        if has_fine_ordering && semantics.order != Order::Relaxed {
            invocation.acquire_and_release(scope, semantics);
        }
        if !semantics.make_visible {
            continue;
        }
        match &last {
            Some((subgroup, known, shown))
                if *subgroup == invocation.subgroup
                    && invocation.views.0.iter().zip(&known.0).all(|(mine, one)| mine.ptr_eq(one)) =>
            {
                invocation.views = shown.clone();
            }
            _ => {
                let known = invocation.views.clone();
                invocation.make_visible(scope, semantics);
                last = Some((invocation.subgroup, known, invocation.views.clone()));
            }
        }
    }
}

/// Joins the states of all invocations and advances the barrier epoch.
fn join_workgroup(
    workgroup: &mut WorkgroupState,
    together: &[usize],
    BarrierSemantics { scope, semantics }: BarrierSemantics,
) {
    let Some(first) = together.first() else { return };
    let number = workgroup.invocations[*first].identity.workgroup_index;
    let subgroup_of = |index: &usize| workgroup.invocations[*index].subgroup;
    let subgroups: Vec<&[usize]> =
        together.chunk_by(|one, next| subgroup_of(one) == subgroup_of(next)).collect();
    for class in CLASSES.intersection(semantics.classes).iter() {
        workgroup.barrier_epochs[class] += 1;
        let epoch = workgroup.barrier_epochs[class];
        let mut all = OrderingState::default();
        let join_lanes = |lanes: &&[usize]| {
            let (mut own, mut last) = (OrderingState::default(), None);
            for index in *lanes {
                let ordering = &workgroup.invocations[*index].views[class].ordering;
                // Most lanes of a subgroup have one state.
                if last.replace(ordering).is_some_and(|last| ordering.ptr_eq(last)) {
                    continue;
                }
                all.join_from(number, ordering, number, domain_level(Scope::Workgroup));
                // Availability in a subgroup's domain matters to that subgroup only, so it is joined
                // per subgroup.
                own.join_available(number, ordering, number, domain_level(Scope::Subgroup));
            }
            own
        };
        let own_states: Vec<OrderingState> = subgroups.iter().map(join_lanes).collect();
        all.before.barrier_epoch = epoch;
        if semantics.make_available {
            all.publish_workgroup(domain_level(scope), epoch);
        }
        for (lanes, own) in subgroups.iter().zip(&own_states) {
            let mut ordering = all.clone();
            ordering.join_available(number, own, number, domain_level(Scope::Subgroup));
            let first = lanes.first().map(|index| &workgroup.invocations[*index]);
            if let Some(first) = first.filter(|_| semantics.make_available) {
                ordering.publish_subgroup(first.number - first.lane, epoch);
            }
            for index in *lanes {
                workgroup.invocations[*index].views[class].ordering = ordering.clone();
            }
        }
    }
}

/// Lets acquires at or after the barrier take the pending and own releases of the others.
fn exchange_releases(workgroup: &mut WorkgroupState, together: &[usize], own: Option<BarrierSemantics>) {
    let mut all = Vec::new();
    for index in together {
        let invocation = &mut workgroup.invocations[*index];
        all.extend(invocation.pending_releases.iter().cloned());
        if let Some(own) = own.filter(|own| own.semantics.order.releases()) {
            all.push(invocation.release(own.scope, own.semantics));
        }
    }
    let merged = group_releases(all);
    for index in together {
        let invocation = &mut workgroup.invocations[*index];
        // A release of subgroup scope reaches its own subgroup alone.
        let reaches = |message: &&Rc<ReleaseMessage>| {
            message.scope != Scope::Subgroup || message.subgroup == invocation.subgroup
        };
        let messages: Vec<Rc<ReleaseMessage>> = merged.iter().filter(reaches).cloned().collect();
        if let Some(own) = own.filter(|own| own.semantics.order.acquires()) {
            messages.iter().for_each(|message| invocation.acquire(message, own.scope, own.semantics));
        }
        invocation.add_pending_acquires(messages);
    }
}

/// Merges releases of one subgroup into one.
fn merge_releases(all: &[Rc<ReleaseMessage>]) -> Option<Rc<ReleaseMessage>> {
    let first = all.first()?;
    if all.len() == 1 {
        return Some(first.clone());
    }
    let mut merged = (*first.ordering).clone();
    for message in &all[1..] {
        for (mine, theirs) in merged.0.iter_mut().zip(&message.ordering.0) {
            mine.join_from(first.workgroup, theirs, message.workgroup, domain_level(Scope::Subgroup));
        }
    }
    Some(Rc::new(ReleaseMessage {
        invocation: MERGED_INVOCATION,
        is_from_atomic: false,
        // The other fields that matter are part of `merge_key` and equal in all messages.
        ordering: Rc::new(merged),
        ..(**first).clone()
    }))
}

/// Returns the key by which releases are merged.
fn merge_key(message: &ReleaseMessage) -> (u32, u32, Scope, u8) {
    (message.workgroup, message.subgroup, message.scope, message.classes.0)
}

/// Merges releases by [`merge_key`] and sorts them by it.
fn group_releases(mut all: Vec<Rc<ReleaseMessage>>) -> Vec<Rc<ReleaseMessage>> {
    // Strictly ascending keys: nothing to merge, and the allocations stay shared.
    if all.is_sorted_by(|one, next| merge_key(one) < merge_key(next)) {
        return all;
    }
    all.sort_by_key(|message| merge_key(message));
    all.chunk_by(|one, other| merge_key(one) == merge_key(other)).filter_map(merge_releases).collect()
}

/// Merges a release into sorted groups, reusing a side that dominates.
fn merge_into_groups(all: &mut Vec<Rc<ReleaseMessage>>, theirs: Rc<ReleaseMessage>) {
    match all.binary_search_by(|known| merge_key(known).cmp(&merge_key(&theirs))) {
        Err(at) => all.insert(at, theirs),
        Ok(at) => {
            let mine = &mut all[at];
            if Rc::ptr_eq(mine, &theirs) || theirs.is_at_least(mine) {
                *mine = theirs;
            } else if !mine.is_at_least(&theirs)
                && let Some(both) = merge_releases(&[mine.clone(), theirs])
            {
                *mine = both;
            }
        }
    }
}

/// Returns the set that a write carries, merged if it is large.
pub(super) fn to_release_set(all: Vec<Rc<ReleaseMessage>>) -> ReleaseSet {
    if all.len() <= MAX_SEPARATE_RELEASES { all.into() } else { group_releases(all).into() }
}

/// Restricts the classes of semantics to [`CLASSES`].
pub(super) fn restrict_to_tracked_classes(semantics: Semantics) -> Semantics {
    Semantics { classes: CLASSES.intersection(semantics.classes), ..semantics }
}

/// Returns true for a control barrier that is a single instruction.
pub(super) fn is_whole_barrier(operation: &SpirvOperation<'_>) -> bool {
    matches!(operation, SpirvOperation::ControlBarrier { part: BarrierPart::Whole, .. })
}
