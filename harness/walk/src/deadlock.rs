//! Deadlock detection: cycles of invocations that wait for each other in spin loops and barriers.
//!
//! The scheduler calls it when every running invocation repeats a loop without changing memory. Then no
//! invocation can change a polled location any more, so the report is sound for the walked schedule. The
//! wait-for graph has an edge from a spinning invocation to the last writer of the location that it polls,
//! and from a waiting invocation to those that have not arrived.

use std::collections::BTreeSet;

use litmus::Scope;
use spirv_reader::{AtomicKind, SpirvOperation};

use super::state::{Interpreter, InvocationCtx, InvocationState, SiteFinding, SpinRead};
use entry_point::{FindingCause, InvocationId};

use super::sync::is_whole_barrier;
use super::value::ConcretePointer;

/// Upper bound on the invocations of a cycle that the message names.
const MAX_NAMED: usize = 8;
/// Upper bound on the reported loops that are in no cycle.
const MAX_SEPARATE: usize = 8;
/// Upper bound on the polled locations whose last writer is looked up.
const MAX_SPIN_READS: usize = 16;

/// A location that a loop polls.
#[derive(Clone, Debug)]
struct AwaitedLocation {
    name: String,
    /// The last writer and its instruction.
    last_write: Option<(u32, u32)>,
}

/// An invocation that repeats a loop without changing anything.
#[derive(Clone, Debug)]
pub(super) struct SpinningInvocation {
    pub site: u32,
    pub identity: InvocationId,
    number: u32,
    awaited: Vec<AwaitedLocation>,
}

/// An edge of the wait-for graph.
#[derive(Clone, Debug)]
struct WaitEdge {
    /// The instruction that waits.
    site: u32,
    /// The awaited invocation.
    target: u32,
    /// Name and site of the target's last change; `None` at a barrier or subgroup operation.
    last_change: Option<(String, u32)>,
}

impl Interpreter<'_> {
    /// Collects the locations that a spinning invocation polls.
    pub(super) fn describe_spin(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        site: u32,
        polled: Vec<SpinRead>,
    ) -> SpinningInvocation {
        let invocation = &ctx.workgroup.invocations[ctx.index];
        let (number, identity) = (invocation.number, invocation.identity);
        // If the loop reads atomics, plain reads are not what it waits for.
        let atomic = polled.iter().any(|place| place.0);
        let places: BTreeSet<SpinRead> = polled.into_iter().filter(|place| place.0 == atomic).collect();
        let mut awaited = Vec::new();
        for (_, object, offset) in places.into_iter().take(MAX_SPIN_READS) {
            let changed = self.object_mut(ctx, object).and_then(|object| object.shadow.last_write(offset));
            let name = self.element_name(ctx, &ConcretePointer::at_object_start(object, 0), offset);
            awaited.push(AwaitedLocation { name, last_write: changed });
        }
        SpinningInvocation { site, identity, number, awaited }
    }

    /// Reports a cycle of the wait-for graph, or else each endless loop.
    pub(super) fn report_deadlock(&mut self, spins: &[SpinningInvocation]) {
        if let Some(cycle) = spins.iter().find_map(|spin| self.find_cycle(spins, spin.number)) {
            let found = self.describe_cycle(&cycle);
            self.report_finding(found);
            return;
        }
        let mut sites = BTreeSet::new();
        for spin in spins.iter().filter(|spin| sites.insert(spin.site)).take(MAX_SEPARATE) {
            let mut at = vec![(spin.site, spin.identity, None)];
            let mut message = format!(
                "invocation {} loops forever: no invocation changes the values that the loop reads",
                spin.identity
            );
            let mut element = String::new();
            if let [AwaitedLocation { name, last_write: changed }] = &spin.awaited[..] {
                element.clone_from(name);
                message += &format!(", `{name}`");
                if let Some((who, site)) = changed {
                    let identity = self.invocation_id(*who);
                    let ended = if self.has_ended(*who) { " before it ended" } else { "" };
                    message += &format!(", which invocation {identity} {}{ended}", self.write_verb(*site));
                    at.push((*site, identity, Some(true)));
                }
            }
            self.report_finding(SiteFinding {
                cause: FindingCause::EndlessLoop,
                element,
                message,
                at,
                inputs: 0,
            });
        }
    }

    /// Finds a cycle reachable from an invocation, by depth-first search.
    fn find_cycle(&self, spins: &[SpinningInvocation], start: u32) -> Option<Vec<(u32, WaitEdge)>> {
        let mut visited = BTreeSet::from([start]);
        let mut path = vec![(start, self.wait_edges(spins, start), 0)];
        while let Some((_, waits, next)) = path.last_mut() {
            let Some(wait) = waits.get(*next) else {
                path.pop();
                continue;
            };
            *next += 1;
            let target = wait.target;
            // The target is on the current path, so the path from it closes a cycle.
            if let Some(first) = path.iter().position(|(invocation, ..)| *invocation == target) {
                let cycle = path[first..].iter().map(|(who, waits, next)| (*who, waits[*next - 1].clone()));
                return Some(cycle.collect());
            }
            if visited.insert(target) {
                path.push((target, self.wait_edges(spins, target), 0));
            }
        }
        None
    }

    /// Returns the edges from an invocation.
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
        let Some((_, operation, site)) = self.waiting_at(workgroup, identity.local_index as usize) else {
            return Vec::new();
        };
        // A control barrier of the workgroup waits for all its invocations, and every other
        // operation for the subgroup.
        let is_barrier = is_whole_barrier(&operation)
            && self.control_barrier_at(site).is_ok_and(|(scope, _)| scope == Scope::Workgroup);
        let subgroup = identity.local_index / self.setup.subgroup_size.max(1);
        let missing = workgroup.invocations.iter().filter(|other| {
            other.state == InvocationState::Running
                && (is_barrier || other.identity.local_index / self.setup.subgroup_size.max(1) == subgroup)
        });
        missing.map(|other| WaitEdge { site, target: other.number, last_change: None }).collect()
    }

    /// Describes a cycle: each wait, and the access that its target performed.
    fn describe_cycle(&self, cycle: &[(u32, WaitEdge)]) -> SiteFinding {
        let (mut words, mut at) = (Vec::new(), Vec::new());
        for (waiting, wait) in cycle.iter().take(MAX_NAMED) {
            let (me, other) = (self.invocation_id(*waiting), self.invocation_id(wait.target));
            at.push((wait.site, me, None));
            words.push(match &wait.last_change {
                None => format!("invocation {me} waits at a barrier for invocation {other}"),
                Some((name, site)) => {
                    at.push((*site, other, Some(true)));
                    let relation =
                        if *waiting == wait.target { "it".to_owned() } else { format!("invocation {other}") };
                    let itself = if *waiting == wait.target { " itself" } else { "" };
                    let verb = self.write_verb(*site);
                    format!("invocation {me} waits for `{name}`, which {relation} {verb}{itself}")
                }
            });
        }
        if cycle.len() > MAX_NAMED {
            words.push(format!("and so on, {} invocations in total", cycle.len()));
        }
        let message = format!("deadlock: {}", words.join("; "));
        let element =
            cycle.iter().find_map(|(_, wait)| wait.last_change.as_ref()).map(|(name, _)| name.clone());
        let element = element.unwrap_or_default();
        SiteFinding { cause: FindingCause::Deadlock, element, message, at, inputs: 0 }
    }

    /// Returns the verb for the last write.
    fn write_verb(&self, site: u32) -> &'static str {
        match self.program.instruction_at(site).map(|inst| inst.operation) {
            Some(SpirvOperation::Store { .. }) | None => "wrote last",
            Some(SpirvOperation::Atomic(access)) => match access.kind {
                AtomicKind::Store { .. } => "wrote last",
                AtomicKind::Exchange { .. } | AtomicKind::CompareExchange { .. } => "took",
                AtomicKind::Load | AtomicKind::Update { .. } => "changed last",
            },
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
