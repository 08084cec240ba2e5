//! In which order the invocations go on, and where they meet.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::rc::Rc;

use rspirv::spirv::Op;

use litmus::Scope;

use crate::error::{Place, Problem, Refusal, unsupported};
use crate::lift::FindingKind;
use crate::order::{scope, semantics};
use crate::until::Until;

use super::circle::Spin;
use super::machine::{Doing, Found, Here, Invocation, Machine, Step, Stop, Workgroup};
use super::program::{Inst, Program};
use super::sync::{self, Barrier};
use super::value::Value;

/// Steps after which an invocation that neither waits nor ends lets others go on.
const QUANTUM: u64 = 20_000;
/// Rounds in which nothing changes before it is asked whether anything ever will.
const IDLE: u32 = 3;
/// Rounds in which nothing changes before lanes no longer wait for a lane whose loop does not come round.
const WEARY: u32 = 100;
/// Steps within which a loop that changes nothing is seen to come round.
const COMES_ROUND: u32 = 20_000;

/// An order of the invocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// One after the other, each as far as it comes.
    Forward,
    /// The same from the last to the first.
    Backward,
    /// All in turn, each up to its next atomic or barrier.
    InTurn,
    /// At random, with changes at atomics and barriers.
    Random(u64),
    /// The same with a subgroup, or one lane alone, far behind, from the beginning or after some atomics and barriers: it goes on where
    /// nobody else gets any further.
    Behind(u64),
}

impl Plan {
    /// The order of that number, of those that a seed draws.
    pub fn of(order: u64, seed: u64) -> Plan {
        let drawn = order.wrapping_add(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        match order {
            0 => Plan::Forward,
            1 => Plan::Backward,
            2 => Plan::InTurn,
            _ if order.is_multiple_of(3) => Plan::Behind(drawn),
            _ => Plan::Random(drawn),
        }
    }

    fn seed(self) -> Option<u64> {
        match self {
            Plan::Random(seed) | Plan::Behind(seed) => Some(seed),
            Plan::Forward | Plan::Backward | Plan::InTurn => None,
        }
    }
}

/// Who is far behind, and for how long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Behind {
    /// Number of the first invocation, and how many.
    pub lanes: Option<(u32, u32)>,
    /// Who of them is not.
    pub except: Option<u32>,
    /// How many atomics and barriers they still come to before they are.
    pub after: u64,
    /// Whether they go on now.
    pub goes: bool,
}

impl Behind {
    fn among(self, number: u32) -> bool {
        let among = self.lanes.is_some_and(|(first, count)| number.wrapping_sub(first) < count);
        among && self.except != Some(number)
    }

    fn holds(self, number: u32) -> bool {
        !self.goes && self.after == 0 && self.among(number)
    }
}

/// What is drawn at random.
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at + 1));
        }
    }
}

impl Machine<'_> {
    /// Walks the whole grid once, with `budget` steps at most.
    pub(super) fn run(&mut self, plan: Plan, budget: u64) -> Result<(), Refusal> {
        let count = self.setup.grid.iter().product::<u32>();
        let mut left: Vec<u32> = (0..count).collect();
        let mut random = Random::new(plan.seed().unwrap_or(1));
        if plan == Plan::Backward {
            left.reverse();
        }
        let mut behind = self.behind(plan, &mut random);
        let (mut idle, mut patience) = (0, IDLE);
        while !left.is_empty() {
            let before = self.changes;
            if plan.seed().is_some() {
                random.shuffle(&mut left);
            }
            behind.goes = idle > 0;
            left = self.round(left, plan, &mut behind, &mut random, budget)?;
            if self.starve(&left) {
                return Ok(());
            }
            idle = if self.changes == before { idle + 1 } else { 0 };
            if idle > patience {
                if self.stuck(patience > WEARY)? {
                    return Ok(());
                }
                (idle, patience) = (0, patience.saturating_mul(2));
            }
        }
        Ok(())
    }

    /// Lets each of the workgroups go on once; those that have not ended.
    pub(super) fn round(
        &mut self,
        left: Vec<u32>,
        plan: Plan,
        behind: &mut Behind,
        random: &mut Random,
        budget: u64,
    ) -> Result<Vec<u32>, Refusal> {
        let mut still = Vec::new();
        for index in left {
            let mut workgroup = match self.workgroups.remove(&index) {
                Some(workgroup) => workgroup,
                None => Box::new(self.begin(index).map_err(|problem| problem.at(Place::Module))?),
            };
            self.turn(&mut workgroup, plan, behind, random, budget)?;
            if workgroup.invocations.iter().any(|invocation| invocation.doing != Doing::Ended) {
                self.workgroups.insert(index, workgroup);
                still.push(index);
            } else {
                let taken = workgroup.objects.iter().map(|object| object.shadow.taken());
                let taken = taken.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
                self.past = if taken.1 > self.past.1 { taken } else { self.past };
            }
        }
        Ok(still)
    }

    /// Who is far behind: a subgroup, or a lane of it.
    fn behind(&self, plan: Plan, random: &mut Random) -> Behind {
        let Plan::Behind(_) = plan else { return Behind::default() };
        let each: u32 = self.setup.local_size.iter().product::<u32>().max(1);
        let size = self.setup.subgroup_size.clamp(1, each);
        let count = self.setup.grid.iter().product::<u32>();
        let workgroup = random.below(count as usize) as u32;
        let first = workgroup * each + random.below(each.div_ceil(size) as usize) as u32 * size;
        let lanes = match random.below(2) {
            0 => (first, size.min((workgroup + 1) * each - first)),
            _ => (workgroup * each + random.below(each as usize) as u32, 1),
        };
        // Few rather than many: what goes wrong within a few operations does so wherever they come.
        let after = 1 << random.below(6);
        Behind { lanes: Some(lanes), after: random.below(after) as u64, ..Behind::default() }
    }

    /// Lets the invocations of a workgroup go on until they end, or until all that go on only wait for memory.
    fn turn(
        &mut self,
        workgroup: &mut Workgroup,
        plan: Plan,
        behind: &mut Behind,
        random: &mut Random,
        budget: u64,
    ) -> Result<(), Refusal> {
        loop {
            let goes =
                |invocation: &Invocation| invocation.doing == Doing::Runs && !behind.holds(invocation.number);
            let mut order: Vec<usize> = (0..workgroup.invocations.len())
                .filter(|index| goes(&workgroup.invocations[*index]))
                .collect();
            let events = match plan {
                Plan::Forward => u64::MAX,
                Plan::Backward => {
                    order.reverse();
                    u64::MAX
                }
                Plan::InTurn => 1,
                Plan::Random(_) | Plan::Behind(_) => {
                    random.shuffle(&mut order);
                    1 + random.below(6) as u64
                }
            };
            for index in order {
                if self.steps > budget {
                    let bound = usize::try_from(budget).unwrap_or(usize::MAX);
                    return Err(Problem::Budget { what: "steps", bound }.at(Place::Module));
                }
                if self.setup.until.as_ref().is_some_and(Until::is_over) {
                    return Err(Problem::OutOfTime.at(Place::Module));
                }
                let number = workgroup.invocations[index].number;
                let mut here = Here { workgroup, index };
                if behind.after == 0 || !behind.among(number) {
                    if !behind.holds(number) {
                        self.go(&mut here, events)?;
                    }
                    continue;
                }
                let before = self.events;
                self.go(&mut here, events.min(behind.after))?;
                behind.after = behind.after.saturating_sub(self.events - before);
            }
            let met = self.meet_subgroups(workgroup, false)?
                | self.waited(workgroup)?
                | self.entered(workgroup)?
                | self.meet_workgroup(workgroup)?;
            let runs = workgroup.invocations.iter().any(|invocation| invocation.doing == Doing::Runs);
            if !met && (runs || workgroup.invocations.iter().all(|one| one.doing == Doing::Ended)) {
                return Ok(());
            }
            if !met && !runs {
                return Ok(());
            }
            if plan == Plan::InTurn || plan.seed().is_some() && random.below(3) == 0 {
                return Ok(());
            }
        }
    }

    fn go(&mut self, here: &mut Here<'_>, events: u64) -> Result<(), Refusal> {
        let (steps, until) = (self.steps, self.events.saturating_add(events));
        let changes = self.changes;
        while self.steps - steps < QUANTUM && self.events < until {
            match self.steps(here, steps + QUANTUM - self.steps) {
                Ok(()) => {}
                Err(Stop::Waits) => break,
                Err(Stop::Ended) => {
                    self.ends(here);
                    let identity = here.me().identity;
                    self.keeps_nobody_out(identity);
                    self.changes += 1;
                    break;
                }
                Err(Stop::Refused(problem)) => {
                    let site = self.site_of(&here.workgroup.invocations[here.index]);
                    return Err(problem.at(self.place(site)));
                }
            }
        }
        let unchanged = self.changes == changes;
        let me = here.me();
        me.fruitless = unchanged && me.doing == Doing::Runs;
        Ok(())
    }

    /// What an invocation waits at, where it does.
    pub(super) fn waits_at(&self, workgroup: &Workgroup, index: usize) -> Option<(Rc<Vec<u32>>, Op, u32)> {
        let invocation = &workgroup.invocations[index];
        let Doing::Waits(instance) = &invocation.doing else { return None };
        let site = self.site_of(invocation);
        Some((instance.clone(), self.program.site(site)?.raw.op, site))
    }

    /// The control barrier at a site: who meets, the scope of memory, and the semantics.
    pub(super) fn barrier_at(&self, site: u32) -> Result<(Scope, Barrier), Refusal> {
        let program = self.program;
        let found = || {
            let Some(inst) = program.site(site) else { return Err(unsupported("no such barrier")) };
            let number = |index: usize| {
                let id = program.module.operand(&inst.raw, index)?;
                program.specialized.number(id).ok_or_else(|| unsupported("a scope that is no constant"))
            };
            let who = scope(number(0)?, program.module.vulkan)?;
            if !matches!(who, Scope::Subgroup | Scope::Workgroup) {
                return Err(unsupported(format!("a control barrier of {who:?} scope")));
            }
            let barrier = Barrier {
                scope: scope(number(1)?, program.module.vulkan)?,
                semantics: sync::narrowed(semantics(number(2)?)?),
            };
            Ok((who, barrier))
        };
        found().map_err(|problem: Problem| problem.at(self.place(site)))
    }

    /// Operations and barriers of subgroups, where all lanes have come that will. `forced` leaves out those that go on.
    fn meet_subgroups(&mut self, workgroup: &mut Workgroup, forced: bool) -> Result<bool, Refusal> {
        let size = self.setup.subgroup_size as usize;
        let count = workgroup.invocations.len();
        let mut met = false;
        for start in (0..count).step_by(size.max(1)) {
            let lanes = start..(start + size).min(count);
            if !forced && lanes.clone().any(|index| workgroup.invocations[index].doing == Doing::Runs) {
                continue;
            }
            let mut waiting = Vec::new();
            for index in lanes.clone() {
                let Some((instance, op, site)) = self.waits_at(workgroup, index) else { continue };
                if matches!(op, Op::ControlBarrierWaitINTEL | Op::BeginInvocationInterlockEXT) {
                    continue;
                }
                let narrow = op != Op::ControlBarrier || self.barrier_at(site)?.0 == Scope::Subgroup;
                if narrow {
                    waiting.push((instance, index, op, site));
                }
            }
            let Some((instance, _, op, site)) = waiting.iter().min_by_key(|one| one.0.clone()).cloned()
            else {
                continue;
            };
            let together: Vec<usize> =
                waiting.iter().filter(|one| one.0 == instance).map(|one| one.1).collect();
            met = true;
            if op == Op::ControlBarrier {
                // Nobody waits for a lane that goes past it: in divergent control flow who executes it together meets (VK-SW-10).
                self.pass(workgroup, &together, self.barrier_at(site)?.1, false);
            } else {
                let done = self.together(workgroup, &together);
                refused(done).map_err(|problem| problem.at(self.place(site)))?;
            }
        }
        Ok(met)
    }

    /// Control barriers of the workgroup, where all have come that will.
    fn meet_workgroup(&mut self, workgroup: &mut Workgroup) -> Result<bool, Refusal> {
        let mut waiting = Vec::new();
        for index in 0..workgroup.invocations.len() {
            match (&workgroup.invocations[index].doing, self.waits_at(workgroup, index)) {
                (Doing::Ended, _) => {}
                (_, Some((instance, Op::ControlBarrier, site)))
                    if self.barrier_at(site)?.0 == Scope::Workgroup =>
                {
                    waiting.push((instance, index, site));
                }
                _ => return Ok(false),
            }
        }
        let Some((instance, _, site)) = waiting.iter().min_by_key(|one| one.0.clone()).cloned() else {
            return Ok(false);
        };
        let together: Vec<usize> = waiting.iter().filter(|one| one.0 == instance).map(|one| one.1).collect();
        let all = workgroup.invocations.len();
        if together.len() < all {
            self.divergent(workgroup, &together);
        }
        self.pass(workgroup, &together, self.barrier_at(site)?.1, together.len() == all);
        Ok(true)
    }

    fn pass(&mut self, workgroup: &mut Workgroup, together: &[usize], barrier: Barrier, whole: bool) {
        if !self.setup.blind {
            sync::meet(workgroup, together, barrier, whole, self.setup.fine);
        }
        for index in together {
            let me = &mut workgroup.invocations[*index];
            me.releases();
            me.doing = Doing::Runs;
            if let Some(frame) = me.frames.last_mut() {
                frame.at += 1;
            }
        }
        self.changes += 1;
    }

    /// Some of a workgroup come to a barrier of it, and others do not.
    fn divergent(&mut self, workgroup: &Workgroup, together: &[usize]) {
        let all = workgroup.invocations.len();
        let missing = (0..all).find(|index| !together.contains(index));
        let (Some(here), Some(other)) = (together.first(), missing) else { return };
        let (here, other) = (&workgroup.invocations[*here], &workgroup.invocations[other]);
        let what = if other.doing == Doing::Ended { "has ended" } else { "waits elsewhere" };
        let message = format!(
            "control barrier in divergent control flow: {} of {all} invocations of the workgroup come to it; invocation {} {what}",
            together.len(),
            other.identity
        );
        let at = vec![(self.site_of(here), here.identity, None), (self.site_of(other), other.identity, None)];
        self.found(Found { kind: FindingKind::DivergentBarrier, message, at });
    }

    /// Nothing has changed for some time: whether nothing ever will, which is told. `weary` is whether it was asked often.
    fn stuck(&mut self, weary: bool) -> Result<bool, Refusal> {
        let mut indices: Vec<u32> = self.workgroups.keys().copied().collect();
        indices.sort_unstable();
        let (spins, all) = self.spinning(&indices, Behind::default());
        if !all && !weary {
            return Ok(false);
        }
        // Lanes that wait for a lane that waits for memory go on without it.
        for index in &indices {
            let Some(mut workgroup) = self.workgroups.remove(index) else { continue };
            let met = self.meet_subgroups(&mut workgroup, true);
            self.workgroups.insert(*index, workgroup);
            if met? {
                return Ok(false);
            }
        }
        self.never_arrived(&indices)?;
        if all {
            self.deadlock(&spins);
        }
        Ok(all)
    }

    /// Who of those that go on repeat a loop that changes nothing, and whether all of them do so.
    pub(super) fn spinning(&mut self, indices: &[u32], behind: Behind) -> (Vec<Spin>, bool) {
        let (mut spins, mut all) = (Vec::new(), true);
        for index in indices {
            let Some(mut workgroup) = self.workgroups.remove(index) else { continue };
            for at in 0..workgroup.invocations.len() {
                let me = &workgroup.invocations[at];
                if me.doing == Doing::Runs && !behind.holds(me.number) {
                    let spin = self.comes_round(&mut Here { workgroup: &mut workgroup, index: at });
                    all &= spin.is_some();
                    spins.extend(spin);
                }
            }
            self.workgroups.insert(*index, workgroup);
        }
        (spins, all)
    }

    /// Whether an invocation comes back to where it was with the same values, and where. Nothing that others see is done.
    pub(super) fn comes_round(&mut self, here: &mut Here<'_>) -> Option<Spin> {
        let kept = here.workgroup.invocations[here.index].clone();
        let before = self.changes;
        let mut seen = std::collections::BTreeSet::new();
        let mut found = None;
        self.polled = Some(Vec::new());
        for _ in 0..COMES_ROUND {
            let Some(frame) = here.workgroup.invocations[here.index].frames.last() else { break };
            let at = frame.at;
            let code = self.program.functions.get(frame.function).map_or(&[][..], |function| &function.code);
            let meets = |inst: &Inst| {
                matches!(
                    inst.raw.op,
                    Op::ControlBarrierArriveINTEL
                        | Op::BeginInvocationInterlockEXT
                        | Op::EndInvocationInterlockEXT
                )
            };
            if code.get(at).is_some_and(meets) {
                break;
            }
            let progress = self.step(here);
            if progress.is_err() || self.changes != before {
                break;
            }
            let me = &here.workgroup.invocations[here.index];
            let jumped_back = me.frames.last().is_some_and(|frame| frame.at < at);
            if jumped_back && !seen.insert(fingerprint(me, self.program)) {
                found = Some(self.site_of(me));
                break;
            }
            // What is accessed before the loop begins anew is no matter of it.
            if jumped_back && seen.len() == 1 {
                self.polled = Some(Vec::new());
            }
        }
        here.workgroup.invocations[here.index] = kept;
        let polled = self.polled.take().unwrap_or_default();
        found.map(|site| self.spin(here, site, polled))
    }
}

/// What of an invocation decides how it goes on.
fn fingerprint(invocation: &Invocation, program: &Program<'_>) -> u64 {
    fn add(hasher: &mut DefaultHasher, value: &Value) {
        match value {
            Value::Bits(bits, _) => hasher.write_u64(*bits),
            Value::Many(parts) => parts.iter().for_each(|part| add(hasher, part)),
            Value::Pointer(pointer) => {
                hasher.write_u32(pointer.object);
                hasher.write_u64(pointer.offset);
            }
            Value::Image(object, _) => hasher.write_u32(*object),
            Value::Sampler(_) => {}
            Value::Nothing(_) => hasher.write_u8(0),
        }
    }
    let mut hasher = DefaultHasher::new();
    for frame in &invocation.frames {
        hasher.write_usize(frame.function);
        hasher.write_usize(frame.at);
        let quiet = program.functions.get(frame.function).map_or(&[][..], |function| &function.quiet);
        let decides = |slot: usize| !quiet.get(slot).copied().unwrap_or(false);
        let deciding = frame.values.iter().enumerate().filter(|(slot, _)| decides(*slot));
        deciding.for_each(|(_, value)| add(&mut hasher, value));
    }
    for object in invocation.locals.iter().filter(|object| !program.quiet.contains(&object.variable)) {
        hasher.write(&object.bytes);
    }
    hasher.finish()
}

fn refused(step: Step<()>) -> Result<(), Problem> {
    match step {
        Err(Stop::Refused(problem)) => Err(problem),
        _ => Ok(()),
    }
}
