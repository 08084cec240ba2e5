//! What orders invocations: releases and acquires of atomics, memory barriers and control barriers.

use std::collections::BTreeMap;
use std::rc::Rc;

use litmus::{Order, Scope, Semantics, StorageClass, StorageClassSet};

use super::clock::{Around, CLASSES, Carried, Message, Past, View, class_index, level, nearest, reaches};
use super::machine::{Invocation, Workgroup};

/// No invocation: of what several gave.
const NOBODY: u32 = u32::MAX;
/// Releases that one write carries before they are gathered.
const FEW: usize = 8;

/// What a control barrier is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    pub scope: Scope,
    pub semantics: Semantics,
}

impl Invocation {
    pub fn who(&self) -> (u32, u32, u32) {
        (self.number, self.identity.workgroup_index, self.subgroup)
    }

    /// When an access of it happens that happens now.
    pub fn now(&self) -> u32 {
        self.stamp + 1
    }

    /// Tells what it did from what it will do.
    pub fn releases(&mut self) {
        self.stamp += 1;
        self.last_release = self.stamp;
    }

    fn around(&self) -> Around {
        let (first, all) = (self.number - self.lane, self.number - self.identity.local_index);
        let end = all + self.shape.local;
        Around {
            invocation: self.number,
            workgroup: self.identity.workgroup_index,
            subgroup: (first, end.min(first + self.shape.subgroup)),
            all: (all, end),
        }
    }

    /// The availability operations of an instruction, which stand before it; those of a barrier of the whole workgroup are told of all.
    pub fn brings(&mut self, scope: Scope, semantics: Semantics, by_itself: bool) {
        if semantics.make_available {
            if by_itself {
                self.releases();
            }
            let (around, time) = (self.around(), by_itself.then_some(self.stamp));
            for class in CLASSES.into_iter().filter(|class| semantics.classes.contains(*class)) {
                self.views[class_index(class)].past.make_available(&around, level(scope), time);
            }
        }
    }

    /// The visibility operations of an instruction, which stand behind it.
    pub fn shows(&mut self, scope: Scope, semantics: Semantics) {
        if semantics.make_visible {
            let around = self.around();
            for class in CLASSES.into_iter().filter(|class| semantics.classes.contains(*class)) {
                self.views[class_index(class)].make_visible(&around, level(scope));
            }
        }
    }

    /// What a release of this invocation gives.
    pub fn message(&mut self, scope: Scope, semantics: Semantics) -> Rc<Message> {
        self.releases();
        let known = [0, 1, 2].map(|class: usize| {
            let mut past = self.views[class].past.clone();
            if semantics.classes.contains(CLASSES[class]) {
                past.before.learn(self.number, self.stamp);
            }
            past
        });
        let (invocation, workgroup, subgroup) = self.who();
        let (classes, time, known) = (semantics.classes, self.stamp, Rc::new(known));
        Rc::new(Message { invocation, time, own: false, workgroup, subgroup, scope, classes, known })
    }

    /// Takes what a release gives, where both reach each other.
    pub fn take(&mut self, message: &Message, scope: Scope, semantics: Semantics) {
        let (mine, theirs) = (self.who(), (message.invocation, message.workgroup, message.subgroup));
        if !reaches(scope, mine, theirs) || !reaches(message.scope, mine, theirs) {
            return;
        }
        for class in CLASSES {
            if semantics.classes.contains(class) && message.classes.contains(class) {
                let (at, near) = (class_index(class), nearest(mine, theirs));
                self.views[at].past.join(mine.1, &message.known[at], theirs.1, near);
            }
        }
    }

    /// A memory barrier.
    pub fn fence(&mut self, scope: Scope, semantics: Semantics) {
        self.brings(scope, semantics, true);
        self.passes(scope, semantics);
        self.shows(scope, semantics);
    }

    /// What a memory barrier takes of the atomics before it, and gives to those behind it.
    fn passes(&mut self, scope: Scope, semantics: Semantics) {
        if semantics.order.acquires() {
            for message in self.taken.clone() {
                self.take(&message, scope, semantics);
            }
        }
        if semantics.order.releases() {
            let message = self.message(scope, semantics);
            // A later barrier of the same scope and classes gives all that an earlier one gave.
            self.released.retain(|earlier| earlier.scope != scope || earlier.classes != semantics.classes);
            self.released.push(message);
        }
    }

    /// What an atomic write of a class carries: its own release and those of the barriers before it.
    pub fn carried(&mut self, class: StorageClass, scope: Scope, semantics: Semantics) -> Vec<Rc<Message>> {
        let mut all: Vec<Rc<Message>> =
            self.released.iter().filter(|message| message.classes.contains(class)).cloned().collect();
        if semantics.order.releases() {
            all.push(Rc::new(Message { own: true, ..(*self.message(scope, semantics)).clone() }));
        }
        all
    }

    /// An atomic that acquires from an atomic at the same place: what that one's agent wrote there is seen there, whatever
    /// classes the semantics name.
    pub fn see(
        &mut self,
        place: (u32, u32, u64),
        messages: &[Rc<Message>],
        scope: Scope,
        semantics: Semantics,
    ) {
        let linked = |message: &&Rc<Message>| {
            let both =
                |class: &StorageClass| semantics.classes.contains(*class) && message.classes.contains(*class);
            message.own && semantics.order.acquires() && CLASSES.iter().any(both)
        };
        for message in messages.iter().filter(linked) {
            let theirs = (message.invocation, message.workgroup, message.subgroup);
            if reaches(scope, self.who(), theirs) && reaches(message.scope, self.who(), theirs) {
                let seen = self.seen.entry(place).or_default();
                let time = seen.entry(message.invocation).or_default();
                *time = (*time).max(message.time);
            }
        }
    }

    /// An atomic read takes what the write carried.
    pub fn receive(&mut self, messages: &Carried, scope: Scope, semantics: Semantics) {
        let acquires = semantics.order.acquires();
        // Who waits finds the same again and again.
        if !acquires && self.received.as_ref().is_some_and(|known| Rc::ptr_eq(known, messages)) {
            return;
        }
        if acquires {
            messages.iter().for_each(|message| self.take(message, scope, semantics));
        }
        self.keep(messages.iter().filter(|message| message.invocation != self.number).cloned().collect());
        self.received = Some(messages.clone());
    }

    /// What an arrival at a split barrier gives: its own release and those of the memory barriers before it.
    pub fn arrives(&mut self, barrier: Barrier) -> Vec<Rc<Message>> {
        let mut all = self.released.clone();
        if barrier.semantics.order.releases() {
            self.fence(barrier.scope, barrier.semantics);
            all.extend(self.released.last().cloned());
        }
        all
    }

    /// What the wait of a split barrier takes, at once or for the memory barriers behind it.
    pub fn waits(&mut self, messages: &[Rc<Message>], barrier: Barrier) {
        let mine = self.subgroup;
        self.brings(barrier.scope, barrier.semantics, true);
        let reaches = |message: &&Rc<Message>| message.scope != Scope::Subgroup || message.subgroup == mine;
        let messages: Vec<Rc<Message>> = messages.iter().filter(reaches).cloned().collect();
        if barrier.semantics.order.acquires() {
            messages.iter().for_each(|message| self.take(message, barrier.scope, barrier.semantics));
        }
        self.keep(messages);
        if barrier.semantics.order.acquires() {
            self.passes(barrier.scope, barrier.semantics);
        }
        self.shows(barrier.scope, barrier.semantics);
    }

    /// What a memory barrier behind it may still take.
    fn keep(&mut self, messages: Vec<Rc<Message>>) {
        if self.taken.len() + messages.len() > FEW {
            if !self.gathered {
                self.taken = grouped(std::mem::take(&mut self.taken));
                self.gathered = true;
            }
            return grouped(messages).into_iter().for_each(|message| unite(&mut self.taken, message));
        }
        self.gathered &= messages.is_empty();
        for message in messages {
            if !self.taken.iter().any(|known| Rc::ptr_eq(known, &message)) {
                self.taken.push(message);
            }
        }
    }
}

/// The invocations `together` of a workgroup meet at a control barrier; `whole` is whether they are all of it.
pub(super) fn meet(workgroup: &mut Workgroup, together: &[usize], barrier: Barrier, whole: bool, fine: bool) {
    let Barrier { scope, semantics } = barrier;
    let both = semantics.order.releases() && semantics.order.acquires();
    let wide = !matches!(scope, Scope::Invocation | Scope::Subgroup);
    let covered = |message: &Rc<Message>| {
        CLASSES.iter().all(|class| !message.classes.contains(*class) || semantics.classes.contains(*class))
    };
    let plain = together.iter().all(|index| workgroup.invocations[*index].released.iter().all(covered));
    let of_all = both && whole && wide;
    for index in together {
        workgroup.invocations[*index].brings(scope, semantics, !of_all);
    }
    if of_all {
        join_all(workgroup, together, barrier);
        if !plain {
            exchange(workgroup, together, None);
        }
    } else {
        let own = (semantics.order != Order::Relaxed).then_some(barrier);
        exchange(workgroup, together, own);
    }
    // What one sees, those of its subgroup see who know the same.
    let mut last: Option<(u32, [View; 3], [View; 3])> = None;
    for index in together {
        let me = &mut workgroup.invocations[*index];
        // The barrier is a memory barrier as well.
        if fine && semantics.order != Order::Relaxed {
            me.passes(scope, semantics);
        }
        if !semantics.make_visible {
            continue;
        }
        match &last {
            Some((subgroup, known, shown))
                if *subgroup == me.subgroup && me.views.iter().zip(known).all(|(mine, one)| mine.is(one)) =>
            {
                me.views = shown.clone();
            }
            _ => {
                let known = me.views.clone();
                me.shows(scope, semantics);
                last = Some((me.subgroup, known, me.views.clone()));
            }
        }
    }
}

/// Everybody of the workgroup knows all of it from here on.
fn join_all(workgroup: &mut Workgroup, together: &[usize], Barrier { scope, semantics }: Barrier) {
    let Some(first) = together.first() else { return };
    let number = workgroup.invocations[*first].identity.workgroup_index;
    for class in CLASSES.into_iter().filter(|class| semantics.classes.contains(*class)) {
        let at = class_index(class);
        workgroup.epochs[at] += 1;
        let epoch = workgroup.epochs[at];
        let mut all = Past::default();
        let mut subgroups: BTreeMap<u32, Past> = BTreeMap::new();
        for index in together {
            let me = &workgroup.invocations[*index];
            let past = &me.views[at].past;
            all.join(number, past, number, level(Scope::Workgroup));
            let own = subgroups.entry(me.number - me.lane).or_default();
            own.join_brought(number, past, number, level(Scope::Subgroup));
        }
        all.before.epoch = epoch;
        if semantics.make_available {
            all.all_available(level(scope), epoch);
        }
        for (first, own) in &mut subgroups {
            let mut past = all.clone();
            past.join_brought(number, own, number, level(Scope::Subgroup));
            if semantics.make_available {
                past.subgroup_available(*first, epoch);
            }
            *own = past;
        }
        for index in together {
            let me = &mut workgroup.invocations[*index];
            if let Some(past) = subgroups.get(&(me.number - me.lane)) {
                me.views[at].past = past.clone();
            }
        }
    }
}

/// Memory barriers before the control barrier, and its own release, reach acquires at or behind it.
fn exchange(workgroup: &mut Workgroup, together: &[usize], own: Option<Barrier>) {
    let mut all = Vec::new();
    for index in together {
        let me = &mut workgroup.invocations[*index];
        all.extend(me.released.iter().cloned());
        if let Some(own) = own.filter(|own| own.semantics.order.releases()) {
            all.push(me.message(own.scope, own.semantics));
        }
    }
    let merged = grouped(all);
    for index in together {
        let me = &mut workgroup.invocations[*index];
        let reaches =
            |message: &&Rc<Message>| message.scope != Scope::Subgroup || message.subgroup == me.subgroup;
        let messages: Vec<Rc<Message>> = merged.iter().filter(reaches).cloned().collect();
        if let Some(own) = own.filter(|own| own.semantics.order.acquires()) {
            messages.iter().for_each(|message| me.take(message, own.scope, own.semantics));
        }
        me.keep(messages);
    }
}

/// What several releases of one subgroup give together.
fn merge(all: &[Rc<Message>]) -> Option<Rc<Message>> {
    let first = all.first()?;
    if all.len() == 1 {
        return Some(first.clone());
    }
    let mut known = (*first.known).clone();
    for message in &all[1..] {
        for (mine, theirs) in known.iter_mut().zip(message.known.iter()) {
            mine.join(first.workgroup, theirs, message.workgroup, level(Scope::Subgroup));
        }
    }
    Some(Rc::new(Message { invocation: NOBODY, own: false, known: Rc::new(known), ..(**first).clone() }))
}

/// Whose releases are told as one where they are not few.
fn whose(message: &Message) -> (u32, u32, Scope, u8) {
    (message.workgroup, message.subgroup, message.scope, message.classes.0)
}

/// Releases, those of one subgroup with the same scope and classes as one, in the order of [`whose`].
fn grouped(mut all: Vec<Rc<Message>>) -> Vec<Rc<Message>> {
    if all.is_sorted_by(|one, next| whose(one) < whose(next)) {
        return all;
    }
    all.sort_by_key(|message| whose(message));
    all.chunk_by(|one, other| whose(one) == whose(other)).filter_map(merge).collect()
}

/// Adds a release to those that are grouped. What both have, and what one has of more than the other, is not made anew.
fn unite(all: &mut Vec<Rc<Message>>, theirs: Rc<Message>) {
    match all.binary_search_by(|known| whose(known).cmp(&whose(&theirs))) {
        Err(at) => all.insert(at, theirs),
        Ok(at) => {
            let mine = &mut all[at];
            if Rc::ptr_eq(mine, &theirs) || theirs.includes(mine) {
                *mine = theirs;
            } else if !mine.includes(&theirs)
                && let Some(both) = merge(&[mine.clone(), theirs])
            {
                *mine = both;
            }
        }
    }
}

/// What a write carries: each by itself where they are few.
pub(super) fn carried_on(all: Vec<Rc<Message>>) -> Carried {
    if all.len() <= FEW { all.into() } else { grouped(all).into() }
}

/// The classes of semantics, as those of the classes that are kept apart.
pub(super) fn narrowed(semantics: Semantics) -> Semantics {
    let classes = CLASSES.into_iter().filter(|class| semantics.classes.contains(*class));
    Semantics { classes: classes.fold(StorageClassSet::EMPTY, StorageClassSet::with), ..semantics }
}
