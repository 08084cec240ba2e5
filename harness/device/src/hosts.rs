//! Threads of the host beside the device: real threads, which reach mapped memory, submit, wait and signal.
//!
//! Plain accesses are relaxed atomics: the compiler of a host's program is not under test, its processor and the driver are.
//! Threads meet at each instance, with a bound. Nothing that a test says rests on that: meeting is relaxed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ash::vk;
use plan::{
    BatchStart, DeviceError, HostAct, HostOperation, HostOrder, HostPlace, HostPlay, HostReport, HostThread,
    HostValue, Hosts, SemaphoreId,
};

use crate::error::failed;
use crate::gpu::Gpu;
use crate::memory::Mapped;
use crate::queue::QueueUse;
use crate::submission::Submission;
use crate::sync::Semaphores;

/// How long a thread waits on a fence before it looks whether another has failed, in nanoseconds.
const SLICE: u64 = 50_000_000;
/// How long a thread waits at first until the others have begun.
const START: Duration = Duration::from_millis(2);
/// How often a thread looks for the others at a meeting.
const LOOKS: u32 = 400;
/// How many turns a thread is late at most, so that now one and now another is first.
const LATE: u32 = 64;

/// The threads of the host of a prepared plan.
pub(crate) struct Players {
    hosts: Arc<Hosts>,
    play: HostPlay,
    /// The fences of the batches; null until [`Players::create`] has made them.
    fences: Vec<vk::Fence>,
    game: Option<Arc<Game>>,
    reported: Vec<u32>,
}

/// A batch as threads submit it.
struct Ready {
    queue: vk::Queue,
    parts: Vec<Part>,
    fence: vk::Fence,
    /// What the host lets it go on with: numbers of semaphores, and values.
    held: Vec<(u32, u32)>,
}

/// What of a batch stands between semaphores.
struct Part {
    commands: Vec<vk::CommandBuffer>,
    waits: (Vec<vk::Semaphore>, Vec<u64>),
    signals: (Vec<vk::Semaphore>, Vec<u64>),
    /// What waits: all commands.
    stages: Vec<vk::PipelineStageFlags>,
}

/// What the threads of a submission share. It keeps no object of Vulkan alive: whoever owns those ends them when the threads
/// have ended, or never.
struct Game {
    raw: ash::Device,
    /// Held by whoever submits.
    submitting: Arc<Mutex<()>>,
    hosts: Arc<Hosts>,
    play: HostPlay,
    memory: Mapped,
    batches: Vec<Ready>,
    /// The semaphores of acts of the host, by their numbers and values.
    semaphores: BTreeMap<(u32, u32), (vk::Semaphore, u64)>,
    /// True if submissions give values to semaphores.
    timelines: bool,
    state: Mutex<State>,
    changed: Condvar,
    failed: AtomicBool,
    /// By thread, how far it is: the act, from 1, and the instance.
    places: Vec<(AtomicU32, AtomicU32)>,
}

#[derive(Default)]
struct State {
    /// By batch, whether it was submitted.
    begun: Vec<bool>,
    /// What the host has signalled.
    signalled: Vec<(u32, u32)>,
    /// Threads that have not ended.
    running: usize,
    /// By thread, what it has reported.
    reported: Vec<Vec<u32>>,
    error: Option<DeviceError>,
}

impl Players {
    pub(crate) fn new(hosts: &Hosts) -> Players {
        Players {
            hosts: Arc::new(hosts.clone()),
            play: HostPlay::default(),
            fences: vec![vk::Fence::null(); hosts.batches.len()],
            game: None,
            reported: Vec::new(),
        }
    }

    /// Makes fences; what was made before an error is kept for [`Players::destroy`].
    pub(crate) fn create(&mut self, raw: &ash::Device) -> Result<(), DeviceError> {
        for fence in &mut self.fences {
            // SAFETY: the device lives.
            *fence = unsafe { raw.create_fence(&vk::FenceCreateInfo::default(), None) }
                .map_err(failed("vkCreateFence"))?;
        }
        Ok(())
    }

    /// The buffer that the threads reach.
    pub(crate) fn buffer(&self) -> usize {
        self.hosts.buffer.0 as usize
    }

    /// Says how the next submissions are played, within so many words of the buffer.
    pub(crate) fn set(&mut self, play: HostPlay, words: u64) -> Result<(), DeviceError> {
        let storages = self.hosts.places().map(|place| place.storage).max();
        let last = storages
            .zip(play.instances.checked_sub(1))
            .map(|(storage, instance)| play.word(instance, storage));
        if last.is_some_and(|last| last >= words) {
            return Err(DeviceError::InvalidPlan("threads of the host reach beyond their buffer".to_owned()));
        }
        self.play = play;
        Ok(())
    }

    /// Begins: batches are submitted that no thread submits, and the threads go.
    pub(crate) fn begin(
        &mut self,
        gpu: &Gpu,
        memory: Mapped,
        queues: &[QueueUse],
        (submissions, semaphores): (&[Submission], &Semaphores),
    ) -> Result<(), DeviceError> {
        if !self.fences.is_empty() {
            // SAFETY: no batch is in flight, so no fence is in use.
            unsafe { gpu.raw.reset_fences(&self.fences) }.map_err(failed("vkResetFences"))?;
        }
        let acts = || self.hosts.threads.iter().flat_map(|thread| &thread.acts);
        let part = |submission: &Submission| {
            let (waits, signals) =
                (semaphores.chosen(&submission.waits), semaphores.chosen(&submission.signals));
            let stages = vec![vk::PipelineStageFlags::ALL_COMMANDS; waits.0.len()];
            let commands = submission.recordings.iter().map(|recording| recording.commands).collect();
            Part { commands, waits, signals, stages }
        };
        let ready = |(number, fence): (u32, &vk::Fence)| {
            let own = || submissions.iter().filter(move |submission| submission.batch == Some(number));
            let queue = own().next()?.queue;
            // What its queue is given before keeps it back, too.
            let before = submissions
                .iter()
                .filter(|other| other.queue == queue && other.batch.is_some_and(|other| other <= number));
            let waits = before.flat_map(|submission| &submission.waits);
            let held = waits.map(|(semaphore, value)| (*semaphore as u32, *value)).filter(|wanted| {
                acts().any(|act| matches!(act, HostAct::Signal { semaphore, value } if (semaphore.0, *value) == *wanted))
            });
            Some(Ready {
                queue: queues.get(queue)?.raw,
                parts: own().map(part).collect(),
                fence: *fence,
                held: held.collect(),
            })
        };
        let batches: Vec<Ready> = (0..).zip(&self.fences).filter_map(ready).collect();
        if batches.len() != self.fences.len() {
            return Err(DeviceError::InvalidPlan("a batch without commands".to_owned()));
        }
        let of_acts = acts().filter_map(|act| match act {
            HostAct::Signal { semaphore, value } | HostAct::Await { semaphore, value } => {
                let (raw, values) = semaphores.chosen(&[(semaphore.0 as usize, *value)]);
                Some(((semaphore.0, *value), (*raw.first()?, *values.first()?)))
            }
            HostAct::Each(_) | HostAct::Submit(_) | HostAct::Wait(_) => None,
        });
        let own_semaphores = of_acts.collect();
        let threads = self.hosts.threads.len();
        let game = Arc::new(Game {
            raw: gpu.raw.clone(),
            submitting: gpu.submitting.clone(),
            hosts: self.hosts.clone(),
            play: self.play,
            memory,
            state: Mutex::new(State {
                begun: vec![false; batches.len()],
                signalled: Vec::new(),
                running: threads,
                reported: vec![Vec::new(); threads],
                error: None,
            }),
            batches,
            semaphores: own_semaphores,
            timelines: semaphores.has_timelines(),
            changed: Condvar::new(),
            failed: AtomicBool::new(false),
            places: (0..threads).map(|_| (AtomicU32::new(0), AtomicU32::new(0))).collect(),
        });
        self.game = Some(game.clone());
        game.memory.invalidate_all(&game.raw)?;
        for (number, start) in (0..).zip(&self.hosts.batches) {
            if *start == BatchStart::Early {
                game.submit(number)?;
            }
        }
        for number in 0..threads {
            let game = game.clone();
            let begun = std::thread::Builder::new().name(format!("host {number}")).spawn(move || {
                let played = game.thread(number);
                game.end(number, played);
            });
            if begun.is_err() {
                self.game.iter().for_each(|game| game.fail(DeviceError::OutOfMemory("a thread of the host")));
                return Err(DeviceError::OutOfMemory("a thread of the host"));
            }
        }
        Ok(())
    }

    /// Waits until all threads and batches have ended; false where that takes longer.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Result<bool, DeviceError> {
        let Some(game) = self.game.clone() else { return Ok(true) };
        let until = Instant::now().checked_add(timeout);
        let left = || until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        let mut state = game.state();
        while state.running > 0 && state.error.is_none() {
            let left = left();
            if left.is_zero() {
                return Ok(false);
            }
            let slice = left.min(Duration::from_secs(3600));
            state = game.changed.wait_timeout(state, slice).unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        self.reported = state.reported.concat();
        drop(state);
        let fences: Vec<_> = game.batches.iter().map(|batch| batch.fence).collect();
        if !fences.is_empty() {
            let left = u64::try_from(left().as_nanos()).unwrap_or(u64::MAX);
            // SAFETY: the fences are this device's, and all batches were submitted with them, as the plan was validated.
            match unsafe { game.raw.wait_for_fences(&fences, true, left) } {
                Ok(()) => {}
                Err(vk::Result::TIMEOUT) => return Ok(false),
                Err(result) => return Err(failed("vkWaitForFences")(result)),
            }
        }
        game.memory.flush_all(&game.raw)?;
        self.game = None;
        Ok(true)
    }

    /// What threads reported in the last submission.
    pub(crate) fn reported(&self) -> &[u32] {
        &self.reported
    }

    /// Gives everything back. Nothing may be in flight.
    pub(crate) fn destroy(&self, raw: &ash::Device) {
        for fence in &self.fences {
            // SAFETY: the fence is this device's or null, and no submission uses it.
            unsafe { raw.destroy_fence(*fence, None) };
        }
    }
}

impl Part {
    fn values(&self) -> vk::TimelineSemaphoreSubmitInfo<'_> {
        vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&self.waits.1)
            .signal_semaphore_values(&self.signals.1)
    }
}

impl Game {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, error: DeviceError) {
        self.failed.store(true, Ordering::Relaxed);
        self.state().error.get_or_insert(error);
        self.changed.notify_all();
    }

    fn end(&self, number: usize, played: Result<Vec<u32>, DeviceError>) {
        match played {
            Ok(reported) => {
                let mut state = self.state();
                state.running -= 1;
                if let Some(own) = state.reported.get_mut(number) {
                    *own = reported;
                }
                drop(state);
                self.changed.notify_all();
            }
            Err(error) => self.fail(error),
        }
    }

    /// Submits a batch.
    fn submit(&self, number: u32) -> Result<(), DeviceError> {
        let batch = self.batch(number)?;
        let mut timelines: Vec<_> = batch.parts.iter().map(Part::values).collect();
        let infos: Vec<_> = batch
            .parts
            .iter()
            .zip(&mut timelines)
            .map(|(part, timeline)| {
                let info = vk::SubmitInfo::default()
                    .command_buffers(&part.commands)
                    .wait_semaphores(&part.waits.0)
                    .wait_dst_stage_mask(&part.stages)
                    .signal_semaphores(&part.signals.0);
                if self.timelines { info.push_next(timeline) } else { info }
            })
            .collect();
        {
            let _alone = self.submitting.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the commands are recorded for this queue's family and not in flight, as each batch is submitted once; nobody
            // else submits meanwhile. What waits is signalled by a thread of the host or by a batch, or keeps the plan in flight.
            unsafe { self.raw.queue_submit(batch.queue, &infos, batch.fence) }
                .map_err(failed("vkQueueSubmit"))?;
        }
        self.note(|state| {
            if let Some(begun) = state.begun.get_mut(number as usize) {
                *begun = true;
            }
        });
        Ok(())
    }

    /// Notes something that others may wait for.
    fn note(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    fn batch(&self, number: u32) -> Result<&Ready, DeviceError> {
        let missing = || DeviceError::InvalidPlan(format!("no batch {number}"));
        self.batches.get(number as usize).ok_or_else(missing)
    }

    /// Waits until a batch has ended; for its fence only once whoever lets it go has done so, since the validation layer 1.3.239
    /// takes a fence that is waited for meanwhile for a mistake.
    fn await_batch(&self, number: u32) -> Result<(), DeviceError> {
        let batch = self.batch(number)?;
        let mut state = self.state();
        let goes_on = |state: &State| {
            state.begun.get(number as usize).copied().unwrap_or(false)
                && batch.held.iter().all(|wanted| state.signalled.contains(wanted))
        };
        while !goes_on(&state) {
            if let Some(error) = &state.error {
                return Err(error.clone());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        loop {
            // SAFETY: the fence is this device's and was given to a submission.
            match unsafe { self.raw.wait_for_fences(&[batch.fence], true, SLICE) } {
                Ok(()) => return Ok(()),
                Err(vk::Result::TIMEOUT) if self.failed.load(Ordering::Relaxed) => {
                    return Err(DeviceError::Busy);
                }
                Err(vk::Result::TIMEOUT) => {}
                Err(result) => return Err(failed("vkWaitForFences")(result)),
            }
        }
    }

    fn semaphore(&self, number: SemaphoreId, value: u32) -> Result<(vk::Semaphore, u64), DeviceError> {
        let missing = || DeviceError::InvalidPlan(format!("no semaphore {}", number.0));
        self.semaphores.get(&(number.0, value)).copied().ok_or_else(missing)
    }

    fn signal(&self, number: SemaphoreId, value: u32) -> Result<(), DeviceError> {
        let (semaphore, risen) = self.semaphore(number, value)?;
        let info = vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(risen);
        // SAFETY: the semaphore is a timeline of this device, whose values rise from turn to turn, and within one as whoever made the
        // plan saw to.
        unsafe { self.raw.signal_semaphore(&info) }.map_err(failed("vkSignalSemaphore"))?;
        self.note(|state| state.signalled.push((number.0, value)));
        Ok(())
    }

    fn await_semaphore(&self, number: SemaphoreId, value: u32) -> Result<(), DeviceError> {
        let (semaphore, risen) = self.semaphore(number, value)?;
        let (semaphores, values) = ([semaphore], [risen]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        loop {
            // SAFETY: the semaphore is a timeline of this device.
            match unsafe { self.raw.wait_semaphores(&info, SLICE) } {
                Ok(()) => return Ok(()),
                Err(vk::Result::TIMEOUT) if self.failed.load(Ordering::Relaxed) => {
                    return Err(DeviceError::Busy);
                }
                Err(vk::Result::TIMEOUT) => {}
                Err(result) => return Err(failed("vkWaitSemaphores")(result)),
            }
        }
    }

    /// Plays a thread to its end; the answer is what it reports.
    fn thread(&self, number: usize) -> Result<Vec<u32>, DeviceError> {
        let missing = || DeviceError::InvalidPlan(format!("no thread {number} of the host"));
        let code = self.hosts.threads.get(number).ok_or_else(missing)?;
        let mut registers = vec![0; code.registers as usize * self.play.instances as usize];
        self.go_to(number, 1, 0);
        let since = Instant::now();
        while !self.others(number).all(|(act, _)| act > 0) && since.elapsed() < START {
            std::thread::yield_now();
        }
        for (at, act) in (1..).zip(&code.acts) {
            self.go_to(number, at, 0);
            match act {
                HostAct::Each(operations) => {
                    let rows = (0..self.play.instances).zip(rows(&mut registers, code.registers));
                    for (instance, row) in rows {
                        self.go_to(number, at, instance);
                        self.meet(number, (at, instance));
                        self.operate(instance, operations, row)?;
                    }
                }
                HostAct::Submit(batch) => self.submit(*batch)?,
                HostAct::Wait(batch) => self.await_batch(*batch)?,
                HostAct::Signal { semaphore, value } => self.signal(*semaphore, *value)?,
                HostAct::Await { semaphore, value } => self.await_semaphore(*semaphore, *value)?,
            }
        }
        self.go_to(number, u32::MAX, u32::MAX);
        Ok(self.report(code, &registers))
    }

    fn go_to(&self, number: usize, act: u32, instance: u32) {
        if let Some((own_act, own_instance)) = self.places.get(number) {
            own_instance.store(instance, Ordering::Relaxed);
            own_act.store(act, Ordering::Relaxed);
        }
    }

    /// How far the other threads are.
    fn others(&self, number: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let others = self.places.iter().enumerate().filter(move |(other, _)| *other != number);
        others.map(|(_, (act, instance))| (act.load(Ordering::Relaxed), instance.load(Ordering::Relaxed)))
    }

    /// Waits for the others to come as far, but not for long: they may wait for this one. Then it may be late.
    fn meet(&self, number: usize, place: (u32, u32)) {
        for _ in 0..LOOKS {
            if self.others(number).all(|other| other >= place) {
                break;
            }
            std::hint::spin_loop();
        }
        let late = place.1.wrapping_mul(5 + 2 * number as u32) % LATE;
        for turn in 0..late {
            std::hint::black_box(turn);
        }
    }

    fn operate(
        &self,
        instance: u32,
        operations: &[HostOperation],
        registers: &mut [u32],
    ) -> Result<(), DeviceError> {
        let mut at = 0;
        while let Some(operation) = operations.get(at) {
            at += 1;
            let value = |value: HostValue| {
                value.of(|register| registers.get(register as usize).copied().unwrap_or(0))
            };
            match operation {
                HostOperation::Load { register, place, order } => {
                    let loaded = self.word(instance, *place)?.load(load_order(*order));
                    if let Some(slot) = registers.get_mut(*register as usize) {
                        *slot = loaded;
                    }
                }
                HostOperation::Store { place, value: stored, order } => {
                    self.word(instance, *place)?.store(value(*stored), store_order(*order));
                }
                HostOperation::Fence(HostOrder::Relaxed) => {}
                HostOperation::Fence(order) => fence(fence_order(*order)),
                HostOperation::Flush(places) => {
                    for place in places {
                        self.memory.flush(&self.raw, self.play.word(instance, place.storage))?;
                    }
                }
                HostOperation::Invalidate(places) => {
                    for place in places {
                        self.memory.invalidate(&self.raw, self.play.word(instance, place.storage))?;
                    }
                }
                HostOperation::Skip { condition, over } => {
                    let taken = condition
                        .is_none_or(|(relation, left, right)| relation.holds(value(left), value(right)));
                    at += if taken { *over as usize } else { 0 };
                }
            }
        }
        Ok(())
    }

    fn word(&self, instance: u32, place: HostPlace) -> Result<&AtomicU32, DeviceError> {
        let word = self.play.word(instance, place.storage);
        self.memory.word(word).ok_or_else(|| DeviceError::InvalidPlan(format!("no word {word} for the host")))
    }

    /// What a thread has in its registers at its end.
    fn report(&self, code: &HostThread, registers: &[u32]) -> Vec<u32> {
        let instances = self.play.instances as usize;
        let mut reported = Vec::with_capacity(code.reports.len() * instances);
        for report in &code.reports {
            reported.extend((0..instances).map(|instance| match report {
                HostReport::Done => self.play.done,
                HostReport::Register(register) => {
                    let at = instance * code.registers as usize + *register as usize;
                    registers.get(at).copied().unwrap_or(self.play.poison)
                }
            }));
        }
        reported
    }
}

/// The registers of each instance; threads without registers have empty rows.
fn rows(registers: &mut [u32], each: u32) -> impl Iterator<Item = &mut [u32]> {
    let empty = std::iter::repeat_with(|| &mut [] as &mut [u32]).take(if each == 0 { usize::MAX } else { 0 });
    registers.chunks_exact_mut(each.max(1) as usize).chain(empty)
}

fn load_order(order: Option<HostOrder>) -> Ordering {
    if order.is_some_and(HostOrder::acquires) { Ordering::Acquire } else { Ordering::Relaxed }
}

fn store_order(order: Option<HostOrder>) -> Ordering {
    if order.is_some_and(HostOrder::releases) { Ordering::Release } else { Ordering::Relaxed }
}

fn fence_order(order: HostOrder) -> Ordering {
    match order {
        HostOrder::Acquire => Ordering::Acquire,
        HostOrder::Release => Ordering::Release,
        // A relaxed fence is none, and not asked for here.
        HostOrder::Relaxed | HostOrder::AcquireRelease => Ordering::AcqRel,
    }
}
