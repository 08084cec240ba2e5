//! Host threads of a plan: real threads that access mapped memory, submit, wait and signal.
//!
//! Plain accesses are relaxed atomics: the test is about the processor and the driver, not about the host
//! compiler. Threads rendezvous at each instance, with a timeout. The rendezvous uses relaxed operations, so
//! it orders nothing in the test.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ash::vk;
use plan::{
    BatchStart, DeviceError, HostAct, HostLayout, HostOperation, HostPlace, HostReport, HostThread,
    HostValue, Hosts, Order, SemaphoreId,
};

use crate::error::call_error;
use crate::gpu::Gpu;
use crate::memory::MappedMemory;
use crate::queue::PreparedQueue;
use crate::submission::Submission;
use crate::sync::Semaphores;

/// The time slice of a fence wait in nanoseconds; after it, a thread checks for errors of other threads.
const FENCE_WAIT_SLICE: u64 = 50_000_000;
/// The maximum time that a thread first waits for the others to start.
const START_TIMEOUT: Duration = Duration::from_millis(2);
/// The maximum number of polls at a rendezvous.
const RENDEZVOUS_POLLS: u32 = 400;
/// The maximum delay in spins after a rendezvous; it varies so that each thread is sometimes first.
const MAX_DELAY_SPINS: u32 = 64;

/// The host threads of a prepared plan.
pub(crate) struct HostRun {
    hosts: Arc<Hosts>,
    layout: HostLayout,
    /// The fences of the batches; null before [`HostRun::create`].
    fences: Vec<vk::Fence>,
    shared_run: Option<Arc<SharedRun>>,
    reports: Vec<u32>,
}

/// A batch, ready to be submitted by a thread.
struct ReadyBatch {
    queue: vk::Queue,
    parts: Vec<SubmitPart>,
    fence: vk::Fence,
    /// Host signals that the batch waits for: semaphore indices and values.
    host_signals: Vec<(u32, u32)>,
}

/// The part of a batch between semaphore operations.
struct SubmitPart {
    commands: Vec<vk::CommandBuffer>,
    waits: (Vec<vk::Semaphore>, Vec<u64>),
    signals: (Vec<vk::Semaphore>, Vec<u64>),
    /// The stages that wait: all commands.
    stages: Vec<vk::PipelineStageFlags>,
}

/// The state that the threads of a submission share.
///
/// It does not keep Vulkan objects alive: their owner destroys them after the threads have ended, or never.
struct SharedRun {
    raw: ash::Device,
    /// Locked during submissions.
    submission_lock: Arc<Mutex<()>>,
    hosts: Arc<Hosts>,
    layout: HostLayout,
    memory: MappedMemory,
    batches: Vec<ReadyBatch>,
    /// The semaphores of host acts, by index and value.
    semaphores: BTreeMap<(u32, u32), (vk::Semaphore, u64)>,
    /// True if submissions assign values to semaphores.
    has_timelines: bool,
    state: Mutex<RunState>,
    changed: Condvar,
    has_failed: AtomicBool,
    /// The progress of each thread: the act, from 1, and the instance.
    progress: Vec<(AtomicU32, AtomicU32)>,
}

#[derive(Default)]
struct RunState {
    /// For each batch, true if it was submitted.
    submitted: Vec<bool>,
    /// The signals of the host so far.
    signalled: Vec<(u32, u32)>,
    /// The number of running threads.
    running: usize,
    /// The reports of each thread.
    reports: Vec<Vec<u32>>,
    error: Option<DeviceError>,
}

impl HostRun {
    pub(crate) fn new(hosts: &Hosts) -> HostRun {
        HostRun {
            hosts: Arc::new(hosts.clone()),
            layout: HostLayout::default(),
            fences: vec![vk::Fence::null(); hosts.batches.len()],
            shared_run: None,
            reports: Vec::new(),
        }
    }

    /// Creates the fences; those created before an error are left for [`HostRun::destroy`].
    pub(crate) fn create(&mut self, raw: &ash::Device) -> Result<(), DeviceError> {
        for fence in &mut self.fences {
            // SAFETY: the device lives.
            *fence = unsafe { raw.create_fence(&vk::FenceCreateInfo::default(), None) }
                .map_err(call_error("vkCreateFence"))?;
        }
        Ok(())
    }

    /// Returns the index of the buffer that the threads access.
    pub(crate) fn buffer(&self) -> usize {
        self.hosts.buffer.0 as usize
    }

    /// Sets the instance layout of the next submissions, which must fit into this many words of the buffer.
    pub(crate) fn set_layout(&mut self, layout: HostLayout, words: u64) -> Result<(), DeviceError> {
        let storages = self.hosts.accessed_places().map(|place| place.storage).max();
        let last = storages
            .zip(layout.instances.checked_sub(1))
            .map(|(storage, instance)| layout.word_index(instance, storage));
        if last.is_some_and(|last| last >= words) {
            return Err(DeviceError::InvalidPlan(
                "host threads access memory outside their buffer".to_owned(),
            ));
        }
        self.layout = layout;
        Ok(())
    }

    /// Submits the batches that no thread submits, and starts the threads.
    pub(crate) fn begin_submission(
        &mut self,
        gpu: &Gpu,
        memory: MappedMemory,
        queues: &[PreparedQueue],
        submissions: &[Submission],
        semaphores: &Semaphores,
    ) -> Result<(), DeviceError> {
        if !self.fences.is_empty() {
            // SAFETY: no batch is in flight, so no fence is in use.
            unsafe { gpu.raw.reset_fences(&self.fences) }.map_err(call_error("vkResetFences"))?;
        }
        let acts = || self.hosts.threads.iter().flat_map(|thread| &thread.acts);
        let part = |submission: &Submission| {
            let (waits, signals) =
                (semaphores.with_values(&submission.waits), semaphores.with_values(&submission.signals));
            let stages = vec![vk::PipelineStageFlags::ALL_COMMANDS; waits.0.len()];
            let commands = submission.recordings.iter().map(|recording| recording.commands).collect();
            SubmitPart { commands, waits, signals, stages }
        };
        let ready = |(number, fence): (u32, &vk::Fence)| {
            let own = || submissions.iter().filter(move |submission| submission.batch == Some(number));
            let queue = own().next()?.queue;
            // Earlier work of its queue delays the batch, too.
            let before = submissions
                .iter()
                .filter(|other| other.queue == queue && other.batch.is_some_and(|other| other <= number));
            let waits = before.flat_map(|submission| &submission.waits);
            let held = waits.map(|(semaphore, value)| (*semaphore as u32, *value)).filter(|wanted| {
                acts().any(|act| matches!(act, HostAct::Signal { semaphore, value } if (semaphore.0, *value) == *wanted))
            });
            Some(ReadyBatch {
                queue: queues.get(queue)?.raw,
                parts: own().map(part).collect(),
                fence: *fence,
                host_signals: held.collect(),
            })
        };
        let batches: Vec<ReadyBatch> = (0..).zip(&self.fences).filter_map(ready).collect();
        if batches.len() != self.fences.len() {
            return Err(DeviceError::InvalidPlan("a batch without commands".to_owned()));
        }
        let of_acts = acts().filter_map(|act| match act {
            HostAct::Signal { semaphore, value } | HostAct::Await { semaphore, value } => {
                let (raw, values) = semaphores.with_values(&[(semaphore.0 as usize, *value)]);
                Some(((semaphore.0, *value), (*raw.first()?, *values.first()?)))
            }
            HostAct::Execute(_) | HostAct::Submit(_) | HostAct::Wait(_) => None,
        });
        let act_semaphores = of_acts.collect();
        let threads = self.hosts.threads.len();
        let shared_run = Arc::new(SharedRun {
            raw: gpu.raw.clone(),
            submission_lock: gpu.submission_lock.clone(),
            hosts: self.hosts.clone(),
            layout: self.layout,
            memory,
            state: Mutex::new(RunState {
                submitted: vec![false; batches.len()],
                signalled: Vec::new(),
                running: threads,
                reports: vec![Vec::new(); threads],
                error: None,
            }),
            batches,
            semaphores: act_semaphores,
            has_timelines: semaphores.has_timelines(),
            changed: Condvar::new(),
            has_failed: AtomicBool::new(false),
            progress: (0..threads).map(|_| (AtomicU32::new(0), AtomicU32::new(0))).collect(),
        });
        self.shared_run = Some(shared_run.clone());
        shared_run.memory.invalidate_all(&shared_run.raw)?;
        for (number, start) in (0..).zip(&self.hosts.batches) {
            if *start == BatchStart::Early {
                shared_run.submit_batch(number)?;
            }
        }
        for number in 0..threads {
            let shared_run = shared_run.clone();
            let spawned = std::thread::Builder::new().name(format!("host {number}")).spawn(move || {
                let result = shared_run.run_thread(number);
                shared_run.end_thread(number, result);
            });
            if spawned.is_err() {
                self.shared_run
                    .iter()
                    .for_each(|game| game.record_failure(DeviceError::OutOfMemory("a host thread")));
                return Err(DeviceError::OutOfMemory("a host thread"));
            }
        }
        Ok(())
    }

    /// Waits until all threads and batches have ended; returns false on timeout.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Result<bool, DeviceError> {
        let Some(shared_run) = self.shared_run.clone() else { return Ok(true) };
        let until = Instant::now().checked_add(timeout);
        let remaining =
            || until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        let mut state = shared_run.lock_state();
        while state.running > 0 && state.error.is_none() {
            let remaining = remaining();
            if remaining.is_zero() {
                return Ok(false);
            }
            let slice = remaining.min(Duration::from_secs(3600));
            state = shared_run.changed.wait_timeout(state, slice).unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        self.reports = state.reports.concat();
        drop(state);
        let fences: Vec<_> = shared_run.batches.iter().map(|batch| batch.fence).collect();
        if !fences.is_empty() {
            let remaining = u64::try_from(remaining().as_nanos()).unwrap_or(u64::MAX);
            // SAFETY: the fences belong to this device, and validation of the plan ensures that all batches
            // were submitted with them.
            match unsafe { shared_run.raw.wait_for_fences(&fences, true, remaining) } {
                Ok(()) => {}
                Err(vk::Result::TIMEOUT) => return Ok(false),
                Err(result) => return Err(call_error("vkWaitForFences")(result)),
            }
        }
        shared_run.memory.flush_all(&shared_run.raw)?;
        self.shared_run = None;
        Ok(true)
    }

    /// Returns the reports of the last submission.
    pub(crate) fn reports(&self) -> &[u32] {
        &self.reports
    }

    /// Destroys all objects. Nothing may be in flight.
    pub(crate) fn destroy(&self, raw: &ash::Device) {
        for fence in &self.fences {
            // SAFETY: the fence is this device's or null, and no submission uses it.
            unsafe { raw.destroy_fence(*fence, None) };
        }
    }
}

impl SubmitPart {
    fn timeline_values(&self) -> vk::TimelineSemaphoreSubmitInfo<'_> {
        vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&self.waits.1)
            .signal_semaphore_values(&self.signals.1)
    }
}

impl SharedRun {
    fn lock_state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_failure(&self, error: DeviceError) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.lock_state().error.get_or_insert(error);
        self.changed.notify_all();
    }

    fn end_thread(&self, number: usize, result: Result<Vec<u32>, DeviceError>) {
        match result {
            Ok(reports) => {
                let mut state = self.lock_state();
                state.running -= 1;
                if let Some(own) = state.reports.get_mut(number) {
                    *own = reports;
                }
                drop(state);
                self.changed.notify_all();
            }
            Err(error) => self.record_failure(error),
        }
    }

    fn submit_batch(&self, number: u32) -> Result<(), DeviceError> {
        let batch = self.ready_batch(number)?;
        let mut timelines: Vec<_> = batch.parts.iter().map(SubmitPart::timeline_values).collect();
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
                if self.has_timelines { info.push_next(timeline) } else { info }
            })
            .collect();
        {
            let _alone = self.submission_lock.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the commands are recorded for this queue's family and not in flight, since each batch
            // is submitted once; the caller holds the submission lock. A thread or a batch signals the
            // awaited semaphores, or the plan stays in flight.
            unsafe { self.raw.queue_submit(batch.queue, &infos, batch.fence) }
                .map_err(call_error("vkQueueSubmit"))?;
        }
        self.update_state(|state| {
            if let Some(begun) = state.submitted.get_mut(number as usize) {
                *begun = true;
            }
        });
        Ok(())
    }

    /// Changes the shared state and wakes waiting threads.
    fn update_state(&self, change: impl FnOnce(&mut RunState)) {
        change(&mut self.lock_state());
        self.changed.notify_all();
    }

    fn ready_batch(&self, number: u32) -> Result<&ReadyBatch, DeviceError> {
        let missing = || DeviceError::InvalidPlan(format!("no batch {number}"));
        self.batches.get(number as usize).ok_or_else(missing)
    }

    /// Waits until a batch has ended.
    ///
    /// It waits for the fence only after the host has signalled everything that the batch waits for:
    /// validation layer 1.3.239 reports a false error if a fence is waited for earlier.
    fn await_batch(&self, number: u32) -> Result<(), DeviceError> {
        let batch = self.ready_batch(number)?;
        let mut state = self.lock_state();
        let is_waitable = |state: &RunState| {
            state.submitted.get(number as usize).copied().unwrap_or(false)
                && batch.host_signals.iter().all(|wanted| state.signalled.contains(wanted))
        };
        while !is_waitable(&state) {
            if let Some(error) = &state.error {
                return Err(error.clone());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        loop {
            // SAFETY: the fence is this device's and was given to a submission.
            match unsafe { self.raw.wait_for_fences(&[batch.fence], true, FENCE_WAIT_SLICE) } {
                Ok(()) => return Ok(()),
                Err(vk::Result::TIMEOUT) if self.has_failed.load(Ordering::Relaxed) => {
                    return Err(DeviceError::Busy);
                }
                Err(vk::Result::TIMEOUT) => {}
                Err(result) => return Err(call_error("vkWaitForFences")(result)),
            }
        }
    }

    fn act_semaphore(&self, number: SemaphoreId, value: u32) -> Result<(vk::Semaphore, u64), DeviceError> {
        let missing = || DeviceError::InvalidPlan(format!("no semaphore {}", number.0));
        self.semaphores.get(&(number.0, value)).copied().ok_or_else(missing)
    }

    fn signal_semaphore(&self, number: SemaphoreId, value: u32) -> Result<(), DeviceError> {
        let (semaphore, risen) = self.act_semaphore(number, value)?;
        let info = vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(risen);
        // SAFETY: the semaphore is a timeline of this device. Its values rise from submission to submission,
        // and validation of the plan ensures it within one.
        unsafe { self.raw.signal_semaphore(&info) }.map_err(call_error("vkSignalSemaphore"))?;
        self.update_state(|state| state.signalled.push((number.0, value)));
        Ok(())
    }

    fn await_semaphore(&self, number: SemaphoreId, value: u32) -> Result<(), DeviceError> {
        let (semaphore, risen) = self.act_semaphore(number, value)?;
        let (semaphores, values) = ([semaphore], [risen]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        loop {
            // SAFETY: the semaphore is a timeline of this device.
            match unsafe { self.raw.wait_semaphores(&info, FENCE_WAIT_SLICE) } {
                Ok(()) => return Ok(()),
                Err(vk::Result::TIMEOUT) if self.has_failed.load(Ordering::Relaxed) => {
                    return Err(DeviceError::Busy);
                }
                Err(vk::Result::TIMEOUT) => {}
                Err(result) => return Err(call_error("vkWaitSemaphores")(result)),
            }
        }
    }

    /// Runs a thread to its end; returns its reports.
    fn run_thread(&self, number: usize) -> Result<Vec<u32>, DeviceError> {
        let missing = || DeviceError::InvalidPlan(format!("no thread {number} of the host"));
        let code = self.hosts.threads.get(number).ok_or_else(missing)?;
        let mut registers = vec![0; code.registers as usize * self.layout.instances as usize];
        self.set_progress(number, 1, 0);
        let start = Instant::now();
        while !self.other_progress(number).all(|(act, _)| act > 0) && start.elapsed() < START_TIMEOUT {
            std::thread::yield_now();
        }
        for (at, act) in (1..).zip(&code.acts) {
            self.set_progress(number, at, 0);
            match act {
                HostAct::Execute(operations) => {
                    let rows = (0..self.layout.instances).zip(register_rows(&mut registers, code.registers));
                    for (instance, row) in rows {
                        self.set_progress(number, at, instance);
                        self.rendezvous(number, (at, instance));
                        self.run_operations(instance, operations, row)?;
                    }
                }
                HostAct::Submit(batch) => self.submit_batch(*batch)?,
                HostAct::Wait(batch) => self.await_batch(*batch)?,
                HostAct::Signal { semaphore, value } => self.signal_semaphore(*semaphore, *value)?,
                HostAct::Await { semaphore, value } => self.await_semaphore(*semaphore, *value)?,
            }
        }
        self.set_progress(number, u32::MAX, u32::MAX);
        Ok(self.thread_reports(code, &registers))
    }

    fn set_progress(&self, number: usize, act: u32, instance: u32) {
        if let Some((own_act, own_instance)) = self.progress.get(number) {
            own_instance.store(instance, Ordering::Relaxed);
            own_act.store(act, Ordering::Relaxed);
        }
    }

    /// Returns the progress of the other threads.
    fn other_progress(&self, number: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let others = self.progress.iter().enumerate().filter(move |(other, _)| *other != number);
        others.map(|(_, (act, instance))| (act.load(Ordering::Relaxed), instance.load(Ordering::Relaxed)))
    }

    /// Waits briefly for the others to reach the same place; they may be waiting for this thread. Then it
    /// delays this thread.
    fn rendezvous(&self, number: usize, place: (u32, u32)) {
        for _ in 0..RENDEZVOUS_POLLS {
            if self.other_progress(number).all(|other| other >= place) {
                break;
            }
            std::hint::spin_loop();
        }
        let delay = place.1.wrapping_mul(5 + 2 * number as u32) % MAX_DELAY_SPINS;
        for spin in 0..delay {
            std::hint::black_box(spin);
        }
    }

    fn run_operations(
        &self,
        instance: u32,
        operations: &[HostOperation],
        registers: &mut [u32],
    ) -> Result<(), DeviceError> {
        let mut at = 0;
        while let Some(operation) = operations.get(at) {
            at += 1;
            let value = |value: HostValue| {
                value.evaluate(|register| registers.get(register as usize).copied().unwrap_or(0))
            };
            match operation {
                HostOperation::Load { register, place, order } => {
                    let loaded = self.host_word(instance, *place)?.load(load_order(*order));
                    if let Some(slot) = registers.get_mut(*register as usize) {
                        *slot = loaded;
                    }
                }
                HostOperation::Store { place, value: stored, order } => {
                    self.host_word(instance, *place)?.store(value(*stored), store_order(*order));
                }
                HostOperation::Fence(Order::Relaxed) => {}
                HostOperation::Fence(order) => fence(fence_order(*order)),
                HostOperation::Flush(places) => {
                    for place in places {
                        self.memory.flush_word(&self.raw, self.layout.word_index(instance, place.storage))?;
                    }
                }
                HostOperation::Invalidate(places) => {
                    for place in places {
                        self.memory
                            .invalidate_word(&self.raw, self.layout.word_index(instance, place.storage))?;
                    }
                }
                HostOperation::Skip { condition, count: over } => {
                    let taken = condition
                        .is_none_or(|(relation, left, right)| relation.holds(value(left), value(right)));
                    at += if taken { *over as usize } else { 0 };
                }
            }
        }
        Ok(())
    }

    fn host_word(&self, instance: u32, place: HostPlace) -> Result<&AtomicU32, DeviceError> {
        let word = self.layout.word_index(instance, place.storage);
        self.memory.word(word).ok_or_else(|| DeviceError::InvalidPlan(format!("no word {word} for the host")))
    }

    /// Returns the reports of a thread from its final registers.
    fn thread_reports(&self, code: &HostThread, registers: &[u32]) -> Vec<u32> {
        let instances = self.layout.instances as usize;
        let mut reports = Vec::with_capacity(code.reports.len() * instances);
        for report in &code.reports {
            reports.extend((0..instances).map(|instance| match report {
                HostReport::Done => self.layout.done,
                HostReport::Register(register) => {
                    let at = instance * code.registers as usize + *register as usize;
                    registers.get(at).copied().unwrap_or(self.layout.poison)
                }
            }));
        }
        reports
    }
}

/// Returns the registers of each instance; threads without registers have empty rows.
fn register_rows(registers: &mut [u32], each: u32) -> impl Iterator<Item = &mut [u32]> {
    let empty = std::iter::repeat_with(|| &mut [] as &mut [u32]).take(if each == 0 { usize::MAX } else { 0 });
    registers.chunks_exact_mut(each.max(1) as usize).chain(empty)
}

fn load_order(order: Option<Order>) -> Ordering {
    if order.is_some_and(Order::acquires) { Ordering::Acquire } else { Ordering::Relaxed }
}

fn store_order(order: Option<Order>) -> Ordering {
    if order.is_some_and(Order::releases) { Ordering::Release } else { Ordering::Relaxed }
}

fn fence_order(order: Order) -> Ordering {
    match order {
        Order::Acquire => Ordering::Acquire,
        Order::Release => Ordering::Release,
        // Relaxed fences have no effect and do not occur here.
        Order::Relaxed | Order::AcquireRelease => Ordering::AcqRel,
    }
}
