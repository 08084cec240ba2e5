//! What orders invocations: releases and acquires of atomics, memory barriers and control barriers.

use std::rc::Rc;

use litmus::{Order, Scope, Semantics, StorageClass, StorageClassSet};

use super::clock::{CLASSES, Carried, Clock, Message, class_index, reaches};
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

    /// What a release of this invocation gives. What it makes available stays so for later ones.
    pub fn message(&mut self, scope: Scope, semantics: Semantics) -> Rc<Message> {
        self.releases();
        let known = [0, 1, 2].map(|class: usize| {
            let view = &mut self.views[class];
            let mut before = view.before.clone();
            if semantics.classes.contains(CLASSES[class]) {
                before.learn(self.number, self.stamp);
                if semantics.make_available {
                    view.available.learn(self.number, self.stamp);
                }
            }
            (before, view.available.clone())
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
            if !semantics.classes.contains(class) || !message.classes.contains(class) {
                continue;
            }
            let (before, available) = &message.known[class_index(class)];
            let view = &mut self.views[class_index(class)];
            view.before.join(mine.1, before, theirs.1);
            view.available.join(mine.1, available, theirs.1);
            if semantics.make_visible {
                view.visible = view.before.clone();
                view.published = view.available.clone();
            }
        }
    }

    /// A memory barrier.
    pub fn fence(&mut self, scope: Scope, semantics: Semantics) {
        if semantics.order.acquires() {
            for message in self.taken.clone() {
                self.take(&message, scope, semantics);
            }
            self.see_what_is_known(scope, semantics);
        }
        if semantics.order.releases() {
            let message = self.message(scope, semantics);
            // A later barrier of the same scope and classes gives all that an earlier one gave.
            self.released.retain(|earlier| earlier.scope != scope || earlier.classes != semantics.classes);
            self.released.push(message);
        }
    }

    /// A visibility operation reaches all that happens before it, whoever it was learnt from: behind a control barrier without one of
    /// its own, what a memory barrier makes visible is what the invocations of the workgroup did before.
    fn see_what_is_known(&mut self, scope: Scope, semantics: Semantics) {
        for class in CLASSES {
            if !semantics.make_visible || !semantics.classes.contains(class) {
                continue;
            }
            let view = &mut self.views[class_index(class)];
            match scope {
                Scope::Invocation | Scope::Subgroup => {}
                Scope::Workgroup => {
                    view.visible.epoch = view.visible.epoch.max(view.before.epoch);
                    view.published.epoch = view.published.epoch.max(view.available.epoch);
                }
                _ => {
                    view.visible = view.before.clone();
                    view.published = view.available.clone();
                }
            }
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
        if acquires {
            self.see_what_is_known(scope, semantics);
        }
    }

    /// What an arrival at a split barrier gives: its own release and those of the memory barriers before it.
    pub fn arrives(&mut self, barrier: Barrier) -> Vec<Rc<Message>> {
        let mut all = self.released.clone();
        if barrier.semantics.order.releases() {
            self.fence(barrier.scope, barrier.semantics);
            all.push(self.message(barrier.scope, barrier.semantics));
        }
        all
    }

    /// What the wait of a split barrier takes, at once or for the memory barriers behind it.
    pub fn waits(&mut self, messages: &[Rc<Message>], barrier: Barrier) {
        let mine = self.subgroup;
        let reaches = |message: &&Rc<Message>| message.scope != Scope::Subgroup || message.subgroup == mine;
        let messages: Vec<Rc<Message>> = messages.iter().filter(reaches).cloned().collect();
        if barrier.semantics.order.acquires() {
            messages.iter().for_each(|message| self.take(message, barrier.scope, barrier.semantics));
        }
        self.keep(messages);
        if barrier.semantics.order.acquires() {
            self.fence(barrier.scope, barrier.semantics);
        }
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
    if both && whole && wide {
        join_all(workgroup, together, semantics);
        if !plain {
            exchange(workgroup, together, None);
        }
    } else {
        let own = (semantics.order != Order::Relaxed).then_some(barrier);
        exchange(workgroup, together, own);
    }
    for index in together {
        let me = &mut workgroup.invocations[*index];
        // The barrier is a memory barrier as well.
        if fine && semantics.order != Order::Relaxed {
            me.fence(scope, semantics);
        }
    }
}

/// Everybody of the workgroup knows all of it from here on.
fn join_all(workgroup: &mut Workgroup, together: &[usize], semantics: Semantics) {
    let Some(first) = together.first() else { return };
    let number = workgroup.invocations[*first].identity.workgroup_index;
    for class in CLASSES.into_iter().filter(|class| semantics.classes.contains(*class)) {
        let at = class_index(class);
        workgroup.epochs[at] += 1;
        let epoch = workgroup.epochs[at];
        let (mut before, mut available) = (Clock::default(), Clock::default());
        for index in together {
            let view = &workgroup.invocations[*index].views[at];
            before.join(number, &view.before, number);
            available.join(number, &view.available, number);
        }
        before.epoch = epoch;
        if semantics.make_available {
            available.epoch = epoch;
        }
        for index in together {
            let view = &mut workgroup.invocations[*index].views[at];
            (view.before, view.available) = (before.clone(), available.clone());
            if semantics.make_visible {
                (view.visible, view.published) = (before.clone(), available.clone());
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
            mine.0.join(first.workgroup, &theirs.0, message.workgroup);
            mine.1.join(first.workgroup, &theirs.1, message.workgroup);
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
