//! Threads of the host beside the device: real threads, which reach mapped memory, submit, wait and signal.
//!
//! Plain accesses are relaxed atomics: the compiler of a host's program is not under test, its processor and the driver are.
//! Threads meet at each instance, with a bound. Nothing that a test says rests on that: meeting is relaxed.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ash::vk;
use plan::{
    BatchStart, DeviceError, HostAct, HostOperation, HostOrder, HostPlace, HostPlay, HostReport, HostThread,
    HostValue, Hosts,
};

use crate::error::failed;
use crate::gpu::Gpu;
use crate::memory::Mapped;
use crate::queue::QueueUse;
use crate::submission::Submission;

/// The value of the semaphore of a batch that goes on.
const RELEASED: u64 = 1;
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
    batches: Vec<Batch>,
    game: Option<Arc<Game>>,
    reported: Vec<u32>,
}

/// A batch of commands; null handles until [`Players::create`] has made them.
#[derive(Clone, Default)]
struct Batch {
    fence: vk::Fence,
    /// What it waits for where it is held.
    semaphore: vk::Semaphore,
}

/// A batch as threads submit it.
#[derive(Clone)]
struct Ready {
    queue: vk::Queue,
    commands: Vec<vk::CommandBuffer>,
    fence: vk::Fence,
    semaphore: vk::Semaphore,
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
    state: Mutex<State>,
    changed: Condvar,
    failed: AtomicBool,
    /// By thread, how far it is: the act, from 1, and the instance.
    places: Vec<(AtomicU32, AtomicU32)>,
}

#[derive(Default)]
struct State {
    /// By batch, whether it was submitted and nothing of the host holds it back.
    begun: Vec<bool>,
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
            batches: vec![Batch::default(); hosts.batches.len()],
            game: None,
            reported: Vec::new(),
        }
    }

    /// Makes fences; what was made before an error is kept for [`Players::destroy`].
    pub(crate) fn create(&mut self, raw: &ash::Device) -> Result<(), DeviceError> {
        for batch in &mut self.batches {
            // SAFETY: the device lives.
            batch.fence = unsafe { raw.create_fence(&vk::FenceCreateInfo::default(), None) }
                .map_err(failed("vkCreateFence"))?;
        }
        Ok(())
    }

    /// Makes ready what batches signal and wait for. None of them is in flight.
    fn renew(&mut self, raw: &ash::Device) -> Result<(), DeviceError> {
        for (batch, start) in self.batches.iter_mut().zip(&self.hosts.batches) {
            // SAFETY: no batch is in flight, so no fence is in use.
            unsafe { raw.reset_fences(&[batch.fence]) }.map_err(failed("vkResetFences"))?;
            if *start == BatchStart::Held {
                let mut timeline = vk::SemaphoreTypeCreateInfo::default()
                    .semaphore_type(vk::SemaphoreType::TIMELINE)
                    .initial_value(0);
                let info = vk::SemaphoreCreateInfo::default().push_next(&mut timeline);
                // SAFETY: no batch is in flight, so nothing waits for the old one. The device has timeline semaphores, as the plan
                // was checked.
                let semaphore = unsafe {
                    raw.destroy_semaphore(std::mem::take(&mut batch.semaphore), None);
                    raw.create_semaphore(&info, None)
                };
                batch.semaphore = semaphore.map_err(failed("vkCreateSemaphore"))?;
            }
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
        submissions: &[Submission],
    ) -> Result<(), DeviceError> {
        self.renew(&gpu.raw)?;
        let ready = |(number, batch): (u32, &Batch)| {
            let submission = submissions.iter().find(|submission| submission.batch == Some(number))?;
            Some(Ready {
                queue: queues.get(submission.queue)?.raw,
                commands: submission.recordings.iter().map(|recording| recording.commands).collect(),
                fence: batch.fence,
                semaphore: batch.semaphore,
            })
        };
        let batches: Vec<Ready> = (0..).zip(&self.batches).filter_map(ready).collect();
        if batches.len() != self.batches.len() {
            return Err(DeviceError::InvalidPlan("a batch without commands".to_owned()));
        }
        let threads = self.hosts.threads.len();
        let game = Arc::new(Game {
            raw: gpu.raw.clone(),
            submitting: gpu.submitting.clone(),
            hosts: self.hosts.clone(),
            play: self.play,
            memory,
            state: Mutex::new(State {
                begun: vec![false; batches.len()],
                running: threads,
                reported: vec![Vec::new(); threads],
                error: None,
            }),
            batches,
            changed: Condvar::new(),
            failed: AtomicBool::new(false),
            places: (0..threads).map(|_| (AtomicU32::new(0), AtomicU32::new(0))).collect(),
        });
        self.game = Some(game.clone());
        game.memory.invalidate_all(&game.raw)?;
        for (number, start) in (0..).zip(&self.hosts.batches) {
            if *start != BatchStart::Submitted {
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
        for batch in &self.batches {
            // SAFETY: the objects are this device's or null, and no submission uses them.
            unsafe {
                raw.destroy_fence(batch.fence, None);
                raw.destroy_semaphore(batch.semaphore, None);
            }
        }
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
        let (semaphores, values) = ([batch.semaphore], [RELEASED]);
        let stages = [vk::PipelineStageFlags::ALL_COMMANDS];
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&values);
        let mut info = vk::SubmitInfo::default().command_buffers(&batch.commands);
        if batch.semaphore != vk::Semaphore::null() {
            info = info.wait_semaphores(&semaphores).wait_dst_stage_mask(&stages).push_next(&mut timeline);
        }
        {
            let _alone = self.submitting.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the commands are recorded for this queue's family and not in flight, as each batch is submitted once; nobody
            // else submits meanwhile. What waits is signalled by a thread of the host, or keeps the plan in flight.
            unsafe { self.raw.queue_submit(batch.queue, &[info], batch.fence) }
                .map_err(failed("vkQueueSubmit"))?;
        }
        if batch.semaphore == vk::Semaphore::null() {
            self.begins(number);
        }
        Ok(())
    }

    fn begins(&self, number: u32) {
        if let Some(begun) = self.state().begun.get_mut(number as usize) {
            *begun = true;
        }
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
        while !state.begun.get(number as usize).copied().unwrap_or(false) {
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

    fn signal(&self, number: u32) -> Result<(), DeviceError> {
        let batch = self.batch(number)?;
        let info = vk::SemaphoreSignalInfo::default().semaphore(batch.semaphore).value(RELEASED);
        // SAFETY: the semaphore is a timeline of this device, of this turn, which signals it once.
        unsafe { self.raw.signal_semaphore(&info) }.map_err(failed("vkSignalSemaphore"))?;
        self.begins(number);
        Ok(())
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
                HostAct::Signal(batch) => self.signal(*batch)?,
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
