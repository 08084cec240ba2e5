//! Who waits for whom, where nobody changes any more what loops read: deadlocks, with everybody in the circle and what each holds.

use std::collections::BTreeSet;

use rspirv::spirv::Op;

use litmus::Scope;

use crate::lift::{FindingKind, Identity};

use super::machine::{Interpreter, InvocationCtx, InvocationState, SiteFinding};
use super::value::ConcretePointer;

/// Invocations of a circle that are named at most.
const MAX_NAMED: usize = 8;
/// Loops that wait for what is in no circle, which are told at most.
const MAX_SEPARATE: usize = 8;
/// Places that a loop reads of which it is looked who changed them at most.
const MAX_SPIN_READS: usize = 16;

/// A place that is accessed: whether atomically, the object and the byte.
pub(super) type SpinRead = (bool, u32, u64);

/// A place that a loop reads again and again.
#[derive(Clone, Debug)]
struct AwaitedLocation {
    name: String,
    /// Who changed it last, and where.
    last_write: Option<(u32, u32)>,
}

/// An invocation that repeats a loop without changing anything.
#[derive(Clone, Debug)]
pub(super) struct SpinningInvocation {
    pub site: u32,
    pub identity: Identity,
    number: u32,
    awaited: Vec<AwaitedLocation>,
}

/// Why an invocation does not go on.
#[derive(Clone, Debug)]
struct WaitEdge {
    /// Where it stands.
    site: u32,
    /// Whom it waits for.
    target: u32,
    /// What that one changed last and where; `None` at a barrier or an operation of a subgroup.
    last_change: Option<(String, u32)>,
}

impl Interpreter<'_> {
    /// An invocation that comes round, with the places that its loop read.
    pub(super) fn describe_spin(
        &mut self,
        here: &mut InvocationCtx<'_>,
        site: u32,
        polled: Vec<SpinRead>,
    ) -> SpinningInvocation {
        let me = &here.workgroup.invocations[here.index];
        let (number, identity) = (me.number, me.identity);
        // Where atomics are read, they are what is waited for.
        let atomic = polled.iter().any(|place| place.0);
        let places: BTreeSet<SpinRead> = polled.into_iter().filter(|place| place.0 == atomic).collect();
        let mut awaited = Vec::new();
        for (_, object, offset) in places.into_iter().take(MAX_SPIN_READS) {
            let changed = self.object_mut(here, object).and_then(|object| object.shadow.last_write(offset));
            let name = self.element_name(here, &ConcretePointer::to_object(object, 0), offset);
            awaited.push(AwaitedLocation { name, last_write: changed });
        }
        SpinningInvocation { site, identity, number, awaited }
    }

    /// Tells loops that nobody ends any more: those who wait for each other in a circle, or else each of the loops.
    pub(super) fn report_deadlock(&mut self, spins: &[SpinningInvocation]) {
        if let Some(circle) = spins.iter().find_map(|spin| self.find_cycle(spins, spin.number)) {
            let found = self.describe_cycle(&circle);
            self.report(found);
            return;
        }
        let mut sites = BTreeSet::new();
        for spin in spins.iter().filter(|spin| sites.insert(spin.site)).take(MAX_SEPARATE) {
            let mut at = vec![(spin.site, spin.identity, None)];
            let mut message = format!(
                "invocation {} repeats a loop for good: nobody changes any more what it reads",
                spin.identity
            );
            if let [AwaitedLocation { name, last_write: changed }] = &spin.awaited[..] {
                message += &format!(", `{name}`");
                if let Some((who, site)) = changed {
                    let identity = self.invocation_id(*who);
                    let ended = if self.has_ended(*who) { " before it ended" } else { "" };
                    message += &format!(", which invocation {identity} {}{ended}", self.write_verb(*site));
                    at.push((*site, identity, Some(true)));
                }
            }
            self.report(SiteFinding { kind: FindingKind::Hang, message, at });
        }
    }

    /// A circle that waits lead into from an invocation.
    fn find_cycle(&self, spins: &[SpinningInvocation], start: u32) -> Option<Vec<(u32, WaitEdge)>> {
        let mut come = BTreeSet::from([start]);
        let mut way = vec![(start, self.wait_edges(spins, start), 0)];
        while let Some((_, waits, next)) = way.last_mut() {
            let Some(wait) = waits.get(*next) else {
                way.pop();
                continue;
            };
            *next += 1;
            let on = wait.target;
            if let Some(first) = way.iter().position(|(who, ..)| *who == on) {
                let circle = way[first..].iter().map(|(who, waits, next)| (*who, waits[*next - 1].clone()));
                return Some(circle.collect());
            }
            if come.insert(on) {
                way.push((on, self.wait_edges(spins, on), 0));
            }
        }
        None
    }

    /// Whom an invocation waits for.
    fn wait_edges(&self, spins: &[SpinningInvocation], number: u32) -> Vec<WaitEdge> {
        if let Some(spin) = spins.iter().find(|spin| spin.number == number) {
            let wait = |awaited: &AwaitedLocation| {
                let (on, site) = awaited.last_write?;
                Some(WaitEdge {
                    site: spin.site,
                    target: on,
                    last_change: Some((awaited.name.clone(), site)),
                })
            };
            return spin.awaited.iter().filter_map(wait).collect();
        }
        let identity = self.invocation_id(number);
        let Some(workgroup) = self.workgroups.get(&identity.workgroup_index) else { return Vec::new() };
        let Some((_, op, site)) = self.waiting_at(workgroup, identity.local_index as usize) else {
            return Vec::new();
        };
        let whole = op == Op::ControlBarrier
            && self.control_barrier_at(site).is_ok_and(|(scope, _)| scope == Scope::Workgroup);
        let subgroup = identity.local_index / self.setup.subgroup_size.max(1);
        let missing = workgroup.invocations.iter().filter(|other| {
            other.state == InvocationState::Running
                && (whole || other.identity.local_index / self.setup.subgroup_size.max(1) == subgroup)
        });
        missing.map(|other| WaitEdge { site, target: other.number, last_change: None }).collect()
    }

    /// A circle in words, with the place where each waits and where the next one took what it waits for.
    fn describe_cycle(&self, circle: &[(u32, WaitEdge)]) -> SiteFinding {
        let (mut words, mut at) = (Vec::new(), Vec::new());
        for (who, wait) in circle.iter().take(MAX_NAMED) {
            let (me, other) = (self.invocation_id(*who), self.invocation_id(wait.target));
            at.push((wait.site, me, None));
            words.push(match &wait.last_change {
                None => format!("invocation {me} waits at a barrier for invocation {other}"),
                Some((name, site)) => {
                    at.push((*site, other, Some(true)));
                    let by =
                        if *who == wait.target { "it".to_owned() } else { format!("invocation {other}") };
                    let itself = if *who == wait.target { " itself" } else { "" };
                    let held = self.write_verb(*site);
                    format!("invocation {me} waits for `{name}`, which {by} {held}{itself}")
                }
            });
        }
        if circle.len() > MAX_NAMED {
            words.push(format!("and so on, {} invocations in all", circle.len()));
        }
        let message = format!("deadlock: {}", words.join("; "));
        SiteFinding { kind: FindingKind::Hang, message, at }
    }

    /// What somebody did who changed memory last, in words.
    fn write_verb(&self, site: u32) -> &'static str {
        match self.program.instruction_at(site).map(|inst| inst.raw.op) {
            Some(Op::AtomicStore | Op::Store) | None => "wrote last",
            Some(Op::AtomicCompareExchange | Op::AtomicCompareExchangeWeak | Op::AtomicExchange) => "took",
            Some(_) => "changed last",
        }
    }

    fn has_ended(&self, number: u32) -> bool {
        let identity = self.invocation_id(number);
        let workgroup = self.workgroups.get(&identity.workgroup_index);
        let me = workgroup.and_then(|all| all.invocations.get(identity.local_index as usize));
        me.is_none_or(|me| me.state == InvocationState::Ended)
    }
}
