//! What orders invocations: releases and acquires of atomics, memory barriers and control barriers.

use std::collections::BTreeMap;
use std::rc::Rc;

use litmus::{Order, Scope, Semantics, StorageClass, StorageClassSet};

use super::happens_before::{
    CLASSES, DomainExtents, HappensBeforeView, OrderingState, ReleaseMessage, ReleaseSet, class_index,
    domain_level, nearest_shared_domain, scope_includes,
};
use super::machine::{Invocation, WorkgroupState};

/// No invocation: of what several gave.
const MERGED_INVOCATION: u32 = u32::MAX;
/// Releases that one write carries before they are gathered.
const MAX_SEPARATE_RELEASES: usize = 8;

/// What a control barrier is.
#[derive(Clone, Copy, Debug)]
pub(super) struct BarrierSemantics {
    pub scope: Scope,
    pub semantics: Semantics,
}

impl Invocation {
    pub fn domain_ids(&self) -> (u32, u32, u32) {
        (self.number, self.identity.workgroup_index, self.subgroup)
    }

    /// When an access of it happens that happens now.
    pub fn current_time(&self) -> u32 {
        self.clock + 1
    }

    /// Tells what it did from what it will do.
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

    /// The availability operations of an instruction, which stand before it; those of a barrier of the whole workgroup are told of all.
    pub fn make_available(&mut self, scope: Scope, semantics: Semantics, by_itself: bool) {
        if semantics.make_available {
            if by_itself {
                self.start_epoch();
            }
            let (around, time) = (self.domain_extents(), by_itself.then_some(self.clock));
            for class in CLASSES.into_iter().filter(|class| semantics.classes.contains(*class)) {
                self.views[class_index(class)].ordering.make_available(&around, domain_level(scope), time);
            }
        }
    }

    /// The visibility operations of an instruction, which stand behind it.
    pub fn make_visible(&mut self, scope: Scope, semantics: Semantics) {
        if semantics.make_visible {
            let around = self.domain_extents();
            for class in CLASSES.into_iter().filter(|class| semantics.classes.contains(*class)) {
                self.views[class_index(class)].make_visible(&around, domain_level(scope));
            }
        }
    }

    /// What a release of this invocation gives.
    pub fn release(&mut self, scope: Scope, semantics: Semantics) -> Rc<ReleaseMessage> {
        self.start_epoch();
        let known = [0, 1, 2].map(|class: usize| {
            let mut past = self.views[class].ordering.clone();
            if semantics.classes.contains(CLASSES[class]) {
                past.before.advance_invocation(self.number, self.clock);
            }
            past
        });
        let (invocation, workgroup, subgroup) = self.domain_ids();
        let (classes, time, known) = (semantics.classes, self.clock, Rc::new(known));
        Rc::new(ReleaseMessage {
            invocation,
            time,
            from_atomic: false,
            workgroup,
            subgroup,
            scope,
            classes,
            ordering: known,
        })
    }

    /// Takes what a release gives, where both reach each other.
    pub fn acquire(&mut self, message: &ReleaseMessage, scope: Scope, semantics: Semantics) {
        let (mine, theirs) = (self.domain_ids(), (message.invocation, message.workgroup, message.subgroup));
        if !scope_includes(scope, mine, theirs) || !scope_includes(message.scope, mine, theirs) {
            return;
        }
        for class in CLASSES {
            if semantics.classes.contains(class) && message.classes.contains(class) {
                let (at, near) = (class_index(class), nearest_shared_domain(mine, theirs));
                self.views[at].ordering.join_from(mine.1, &message.ordering[at], theirs.1, near);
            }
        }
    }

    /// A memory barrier.
    pub fn execute_fence(&mut self, scope: Scope, semantics: Semantics) {
        self.make_available(scope, semantics, true);
        self.acquire_and_release(scope, semantics);
        self.make_visible(scope, semantics);
    }

    /// What a memory barrier takes of the atomics before it, and gives to those behind it.
    fn acquire_and_release(&mut self, scope: Scope, semantics: Semantics) {
        if semantics.order.acquires() {
            for message in self.pending_acquires.clone() {
                self.acquire(&message, scope, semantics);
            }
        }
        if semantics.order.releases() {
            let message = self.release(scope, semantics);
            // A later barrier of the same scope and classes gives all that an earlier one gave.
            self.pending_releases
                .retain(|earlier| earlier.scope != scope || earlier.classes != semantics.classes);
            self.pending_releases.push(message);
        }
    }

    /// What an atomic write of a class carries: its own release and those of the barriers before it.
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
                from_atomic: true,
                ..(*self.release(scope, semantics)).clone()
            }));
        }
        all
    }

    /// An atomic that acquires from an atomic at the same place: what that one's agent wrote there is seen there, whatever
    /// classes the semantics name.
    pub fn acquire_self_visible(
        &mut self,
        place: (u32, u32, u64),
        messages: &[Rc<ReleaseMessage>],
        scope: Scope,
        semantics: Semantics,
    ) {
        let linked = |message: &&Rc<ReleaseMessage>| {
            let both =
                |class: &StorageClass| semantics.classes.contains(*class) && message.classes.contains(*class);
            message.from_atomic && semantics.order.acquires() && CLASSES.iter().any(both)
        };
        for message in messages.iter().filter(linked) {
            let theirs = (message.invocation, message.workgroup, message.subgroup);
            if scope_includes(scope, self.domain_ids(), theirs)
                && scope_includes(message.scope, self.domain_ids(), theirs)
            {
                let seen = self.self_visible.entry(place).or_default();
                let time = seen.entry(message.invocation).or_default();
                *time = (*time).max(message.time);
            }
        }
    }

    /// An atomic read takes what the write carried.
    pub fn acquire_from_write(&mut self, messages: &ReleaseSet, scope: Scope, semantics: Semantics) {
        let acquires = semantics.order.acquires();
        // Who waits finds the same again and again.
        if !acquires && self.last_received.as_ref().is_some_and(|known| Rc::ptr_eq(known, messages)) {
            return;
        }
        if acquires {
            messages.iter().for_each(|message| self.acquire(message, scope, semantics));
        }
        self.keep_for_fences(
            messages.iter().filter(|message| message.invocation != self.number).cloned().collect(),
        );
        self.last_received = Some(messages.clone());
    }

    /// What an arrival at a split barrier gives: its own release and those of the memory barriers before it.
    pub fn arrive_at_split_barrier(&mut self, barrier: BarrierSemantics) -> Vec<Rc<ReleaseMessage>> {
        let mut all = self.pending_releases.clone();
        if barrier.semantics.order.releases() {
            self.execute_fence(barrier.scope, barrier.semantics);
            all.extend(self.pending_releases.last().cloned());
        }
        all
    }

    /// What the wait of a split barrier takes, at once or for the memory barriers behind it.
    pub fn finish_split_barrier(&mut self, messages: &[Rc<ReleaseMessage>], barrier: BarrierSemantics) {
        let mine = self.subgroup;
        self.make_available(barrier.scope, barrier.semantics, true);
        let reaches =
            |message: &&Rc<ReleaseMessage>| message.scope != Scope::Subgroup || message.subgroup == mine;
        let messages: Vec<Rc<ReleaseMessage>> = messages.iter().filter(reaches).cloned().collect();
        if barrier.semantics.order.acquires() {
            messages.iter().for_each(|message| self.acquire(message, barrier.scope, barrier.semantics));
        }
        self.keep_for_fences(messages);
        if barrier.semantics.order.acquires() {
            self.acquire_and_release(barrier.scope, barrier.semantics);
        }
        self.make_visible(barrier.scope, barrier.semantics);
    }

    /// What a memory barrier behind it may still take.
    fn keep_for_fences(&mut self, messages: Vec<Rc<ReleaseMessage>>) {
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

/// The invocations `together` of a workgroup meet at a control barrier; `whole` is whether they are all of it.
pub(super) fn synchronize_at_barrier(
    workgroup: &mut WorkgroupState,
    together: &[usize],
    barrier: BarrierSemantics,
    whole: bool,
    fine: bool,
) {
    let BarrierSemantics { scope, semantics } = barrier;
    let both = semantics.order.releases() && semantics.order.acquires();
    let wide = !matches!(scope, Scope::Invocation | Scope::Subgroup);
    let covered = |message: &Rc<ReleaseMessage>| {
        CLASSES.iter().all(|class| !message.classes.contains(*class) || semantics.classes.contains(*class))
    };
    let plain =
        together.iter().all(|index| workgroup.invocations[*index].pending_releases.iter().all(covered));
    let of_all = both && whole && wide;
    for index in together {
        workgroup.invocations[*index].make_available(scope, semantics, !of_all);
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
    // What one sees, those of its subgroup see who know the same.
    let mut last: Option<(u32, [HappensBeforeView; 3], [HappensBeforeView; 3])> = None;
    for index in together {
        let me = &mut workgroup.invocations[*index];
        // The barrier is a memory barrier as well.
        if fine && semantics.order != Order::Relaxed {
            me.acquire_and_release(scope, semantics);
        }
        if !semantics.make_visible {
            continue;
        }
        match &last {
            Some((subgroup, known, shown))
                if *subgroup == me.subgroup
                    && me.views.iter().zip(known).all(|(mine, one)| mine.ptr_eq(one)) =>
            {
                me.views = shown.clone();
            }
            _ => {
                let known = me.views.clone();
                me.make_visible(scope, semantics);
                last = Some((me.subgroup, known, me.views.clone()));
            }
        }
    }
}

/// Everybody of the workgroup knows all of it from here on.
fn join_workgroup(
    workgroup: &mut WorkgroupState,
    together: &[usize],
    BarrierSemantics { scope, semantics }: BarrierSemantics,
) {
    let Some(first) = together.first() else { return };
    let number = workgroup.invocations[*first].identity.workgroup_index;
    for class in CLASSES.into_iter().filter(|class| semantics.classes.contains(*class)) {
        let at = class_index(class);
        workgroup.barrier_epochs[at] += 1;
        let epoch = workgroup.barrier_epochs[at];
        let mut all = OrderingState::default();
        let mut subgroups: BTreeMap<u32, OrderingState> = BTreeMap::new();
        for index in together {
            let me = &workgroup.invocations[*index];
            let past = &me.views[at].ordering;
            all.join_from(number, past, number, domain_level(Scope::Workgroup));
            let own = subgroups.entry(me.number - me.lane).or_default();
            own.join_available(number, past, number, domain_level(Scope::Subgroup));
        }
        all.before.barrier_epoch = epoch;
        if semantics.make_available {
            all.publish_workgroup(domain_level(scope), epoch);
        }
        for (first, own) in &mut subgroups {
            let mut past = all.clone();
            past.join_available(number, own, number, domain_level(Scope::Subgroup));
            if semantics.make_available {
                past.publish_subgroup(*first, epoch);
            }
            *own = past;
        }
        for index in together {
            let me = &mut workgroup.invocations[*index];
            if let Some(past) = subgroups.get(&(me.number - me.lane)) {
                me.views[at].ordering = past.clone();
            }
        }
    }
}

/// Memory barriers before the control barrier, and its own release, reach acquires at or behind it.
fn exchange_releases(workgroup: &mut WorkgroupState, together: &[usize], own: Option<BarrierSemantics>) {
    let mut all = Vec::new();
    for index in together {
        let me = &mut workgroup.invocations[*index];
        all.extend(me.pending_releases.iter().cloned());
        if let Some(own) = own.filter(|own| own.semantics.order.releases()) {
            all.push(me.release(own.scope, own.semantics));
        }
    }
    let merged = group_releases(all);
    for index in together {
        let me = &mut workgroup.invocations[*index];
        let reaches = |message: &&Rc<ReleaseMessage>| {
            message.scope != Scope::Subgroup || message.subgroup == me.subgroup
        };
        let messages: Vec<Rc<ReleaseMessage>> = merged.iter().filter(reaches).cloned().collect();
        if let Some(own) = own.filter(|own| own.semantics.order.acquires()) {
            messages.iter().for_each(|message| me.acquire(message, own.scope, own.semantics));
        }
        me.keep_for_fences(messages);
    }
}

/// What several releases of one subgroup give together.
fn merge_releases(all: &[Rc<ReleaseMessage>]) -> Option<Rc<ReleaseMessage>> {
    let first = all.first()?;
    if all.len() == 1 {
        return Some(first.clone());
    }
    let mut known = (*first.ordering).clone();
    for message in &all[1..] {
        for (mine, theirs) in known.iter_mut().zip(message.ordering.iter()) {
            mine.join_from(first.workgroup, theirs, message.workgroup, domain_level(Scope::Subgroup));
        }
    }
    Some(Rc::new(ReleaseMessage {
        invocation: MERGED_INVOCATION,
        from_atomic: false,
        ordering: Rc::new(known),
        ..(**first).clone()
    }))
}

/// Whose releases are told as one where they are not few.
fn merge_key(message: &ReleaseMessage) -> (u32, u32, Scope, u8) {
    (message.workgroup, message.subgroup, message.scope, message.classes.0)
}

/// Releases, those of one subgroup with the same scope and classes as one, in the order of [`whose`].
fn group_releases(mut all: Vec<Rc<ReleaseMessage>>) -> Vec<Rc<ReleaseMessage>> {
    if all.is_sorted_by(|one, next| merge_key(one) < merge_key(next)) {
        return all;
    }
    all.sort_by_key(|message| merge_key(message));
    all.chunk_by(|one, other| merge_key(one) == merge_key(other)).filter_map(merge_releases).collect()
}

/// Adds a release to those that are grouped. What both have, and what one has of more than the other, is not made anew.
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

/// What a write carries: each by itself where they are few.
pub(super) fn to_release_set(all: Vec<Rc<ReleaseMessage>>) -> ReleaseSet {
    if all.len() <= MAX_SEPARATE_RELEASES { all.into() } else { group_releases(all).into() }
}

/// The classes of semantics, as those of the classes that are kept apart.
pub(super) fn restrict_to_tracked_classes(semantics: Semantics) -> Semantics {
    let classes = CLASSES.into_iter().filter(|class| semantics.classes.contains(*class));
    Semantics { classes: classes.fold(StorageClassSet::EMPTY, StorageClassSet::with), ..semantics }
}
