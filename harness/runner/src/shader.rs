//! User shaders on a device: dispatches a shader repeatedly next to dispatches of memory stress, and counts
//! its final buffer contents.
//!
//! The module goes to the device unchanged, with the names and numbers of its interface
//! ([`plan::Interface`]). Every dispatch starts with the input contents, and its final contents are one
//! outcome. Different contents are counted separately up to a limit, and reported by their differences. No
//! memory model is used here.

mod canaries;
mod contents;
mod serve;
mod stress_dispatch;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use plan::{
    BufferBinding, BufferId, BufferMemory, Device, DeviceError, Image, ImageAccess, ImageFormat, ImageId,
    ImageShape, Interface, Kernel, KernelId, Plan, PlanStep, Prepared, Queue, QueueId, SamplerState,
    Subgroups,
};
use serde::{Deserialize, Serialize};
use shaders::checksum::WordRange;

use crate::canary::submit_and_wait;
use crate::completion_marker::CompletionMarker;
use crate::dispatch::Execution;
use crate::error::Cause;
use crate::host_copy::{BufferPrefix, HostCopy};
use crate::readback::{ExpectedWords, ReadBuffer, ReadbackCheck};
use crate::run::needs_readback_check;
use crate::stress::Stress;
use canaries::{Canaries, DispatchSteps};
use contents::ContentCounts;
use stress_dispatch::StressDispatch;

pub use contents::{Content, MAX_ROWS, ShaderObservations, WordChange};
pub use serve::{Answer, UserShaderJob, serve};

/// A shader with its inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shader {
    pub words: Vec<u32>,
    pub entry: String,
    /// Workgroups in x, y and z.
    pub grid: [u32; 3],
    /// Specialization constants: ids and values as bytes.
    pub constants: Vec<(u32, Vec<u8>)>,
    pub push: Vec<u8>,
    /// Buffers, in the order of their bindings.
    pub buffers: Vec<ShaderInput>,
    /// Descriptor set and binding of each sampler, with its state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samplers: Vec<((u32, u32), SamplerState)>,
    /// The subgroup size that the pipeline requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subgroup_size: Option<u32>,
}

/// A buffer with its contents before each dispatch.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShaderInput {
    /// Descriptor set, binding, and the index in an array of buffers.
    pub at: [u32; 3],
    /// A uniform buffer or a sampled image, which the shader cannot write.
    pub uniform: bool,
    /// Shape and format of an image, whose texels are the words.
    pub image: Option<InputImage>,
    /// Run-length encoded contents: number of repetitions, and the word.
    pub runs: Vec<(u64, u32)>,
}

/// An image, whose texels are packed in the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputImage {
    pub shape: InputShape,
    /// Texels in a row, rows, and slices or layers.
    pub size: [u32; 3],
    /// The number of its format in SPIR-V.
    pub format: u32,
    pub access: ImageAccess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputShape {
    OneDimensional,
    TwoDimensional,
    Layered,
    ThreeDimensional,
    Texels,
}

impl InputImage {
    /// Returns the image of a plan; that of a texel buffer has a buffer.
    fn to_image(self, buffer: Option<BufferId>) -> Image {
        let size = self.size.map(|axis| axis.max(1));
        let [width, height, _] = size;
        let shape = match (self.shape, buffer) {
            (_, Some(buffer)) => ImageShape::Texels(buffer),
            (InputShape::OneDimensional | InputShape::Texels, None) => ImageShape::OneDimensional { width },
            (InputShape::TwoDimensional, None) => ImageShape::TwoDimensional { width, height },
            (InputShape::Layered, None) => ImageShape::Layered { size },
            (InputShape::ThreeDimensional, None) => ImageShape::ThreeDimensional { size },
        };
        // Unknown formats are refused when a shader is read, so this default is never used.
        let format = ImageFormat::from_spirv(self.format).unwrap_or(ImageFormat::UNSIGNED);
        let (memory, name) = (BufferMemory::Private, "image of a shader");
        Image { shape, format, access: self.access, memory, name }
    }
}

impl ShaderInput {
    /// Creates a buffer with these words.
    pub fn new(at: [u32; 3], uniform: bool, words: &[u32]) -> ShaderInput {
        let runs = words.chunk_by(|left, right| left == right);
        let runs = runs.filter_map(|run| Some((run.len() as u64, *run.first()?))).collect();
        ShaderInput { at, uniform, image: None, runs }
    }

    pub fn words(&self) -> Vec<u32> {
        let run = |(count, word): &(u64, u32)| std::iter::repeat_n(*word, *count as usize);
        self.runs.iter().flat_map(run).collect()
    }

    fn len(&self) -> u64 {
        self.runs.iter().map(|(count, _)| *count).sum()
    }
}

impl Shader {
    fn has_images(&self) -> bool {
        self.buffers.iter().any(|input| input.image.is_some())
    }

    /// Returns the kernel for plans.
    pub fn kernel(&self) -> Kernel {
        let bound = |input: &&ShaderInput| {
            let [set, binding, element] = input.at;
            BufferBinding { set, binding, element, uniform: input.uniform }
        };
        let (images, buffers): (Vec<&ShaderInput>, Vec<&ShaderInput>) =
            self.buffers.iter().partition(|input| input.image.is_some());
        let [_, y, z] = self.grid;
        Kernel {
            words: self.words.clone(),
            bindings: buffers.len() as u32,
            images: (0..images.len() as u32).map(ImageId).collect(),
            push_constant_bytes: self.push.len() as u32,
            subgroups: self.subgroup_size.map_or(Subgroups::Any, Subgroups::Required),
            interface: Some(Interface {
                entry: self.entry.clone(),
                bindings: buffers.iter().map(bound).collect(),
                images: images.iter().map(|image| (image.at[0], image.at[1])).collect(),
                samplers: self.samplers.clone(),
                constants: self.constants.clone(),
                layers: [y, z],
            }),
            ..Kernel::default()
        }
    }

    /// Returns a plan of a single dispatch without stress, to check the requirements of the shader.
    pub fn plan(&self) -> Plan {
        ShaderPlanLayout::new(self, 1, None, 0, false).plan
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShaderSettings {
    /// The maximum number of dispatches.
    pub instances: Option<u64>,
    /// Time limit of the run.
    pub time: Option<Duration>,
    /// The seed of the stress dispatches and of the simulated device.
    pub seed: u64,
    pub stress: Stress,
    /// Time limit of a submission.
    pub submission_timeout: Duration,
    /// Words whose values are reported for all contents, each as buffer and word index.
    pub watched: Vec<(u32, u64)>,
}

const QUEUE: QueueId = QueueId(0);
/// The content of read-back buffers before contents are copied there.
const POISON: u32 = 0xa5a5_5a5a;
/// The maximum words of all buffers of a submission. Several dispatches of small buffers share one.
const SUBMISSION_WORDS: u64 = 1 << 18;
/// The maximum number of dispatches in a submission.
const MAX_DISPATCHES: u64 = 16;
/// The target duration of a submission.
const SUBMISSION_TIME: Duration = Duration::from_millis(20);
/// Submissions between two draws of stress parameters.
const REDRAW_INTERVAL: u64 = 8;

/// The positions of all parts in a plan.
struct ShaderPlanLayout {
    plan: Plan,
    /// For each dispatch its read-back buffers, in the order of the shader's writable ones.
    readback_buffers: Vec<Vec<BufferId>>,
    /// The buffers with the initial contents.
    initial: Vec<BufferId>,
    /// The contents of images before the shader, for the host, with the indexes of their inputs.
    initial_images: Vec<(BufferId, usize)>,
    /// The steps that generate memory stress.
    stress_steps: Vec<usize>,
    /// Detects partial or repeated execution of a submission.
    canaries: Canaries,
    /// The checksums of all buffers before the shader, then those of all read-back buffers, with the words of
    /// each.
    checks: Vec<(ReadbackCheck, Vec<u64>)>,
    /// The marker for complete execution of a submission.
    marker: CompletionMarker,
}

/// The kernel that generates memory stress, after those of the shader and the canaries.
const STRESS_KERNEL: KernelId = KernelId(2);

impl ShaderPlanLayout {
    /// Builds a plan with this many dispatches, each with its own buffers. It must be one if there are
    /// images, because they belong to kernels. If `verified`, the device computes checksums of the contents.
    fn new(
        shader: &Shader,
        dispatches: u64,
        stress: Option<&StressDispatch>,
        turn: usize,
        verified: bool,
    ) -> ShaderPlanLayout {
        let mut plan = Plan { queues: vec![Queue { family: 0 }], ..Plan::default() };
        plan.kernels.push(shader.kernel());
        let buffer = |plan: &mut Plan, words: u64, memory, name| plan.add_buffer(words.max(1), memory, name);
        let initial: Vec<BufferId> = (shader.buffers.iter())
            .map(|input| buffer(&mut plan, input.len(), BufferMemory::Shared, "initial contents of a buffer"))
            .collect();
        let mut canaries = Canaries::new(&mut plan, shader.grid[0], turn, shader.has_images());
        plan.kernels.extend(stress.map(StressDispatch::kernel));
        let (mut prepare, mut run, mut read_back) = (Vec::new(), Vec::new(), Vec::new());
        let mut read = Vec::new();
        let (mut initialized, mut checked) = (Vec::new(), Vec::new());
        let (mut filled, mut image_checks) = (Vec::new(), Vec::new());
        for _ in 0..dispatches {
            let mut steps = DispatchSteps::default();
            let mut bindings = Vec::new();
            let mut back = Vec::new();
            for (number, (input, from)) in shader.buffers.iter().zip(&initial).enumerate() {
                let back_name = "contents after a shader, for the host";
                let to = (!input.uniform)
                    .then(|| buffer(&mut plan, input.len(), BufferMemory::Readback, back_name));
                let most = input.len().max(1);
                let (initialize, copy) = match input.image.filter(|image| image.shape != InputShape::Texels) {
                    Some(image) => {
                        let own = add_image(&mut plan, image.to_image(None));
                        let name = "texels before a shader, for the host";
                        let before = buffer(&mut plan, input.len(), BufferMemory::Readback, name);
                        filled.push((before, number));
                        image_checks.push(PlanStep::FromImage { queue: QUEUE, from: own, to: before });
                        image_checks.push(PlanStep::ToHost { queue: QUEUE, buffer: before });
                        let copy = to.map(|to| PlanStep::FromImage { queue: QUEUE, from: own, to });
                        // The device reads texels from their copy.
                        checked.extend(to.map(|to| ReadBuffer {
                            on_device: to,
                            expected: ExpectedWords::OnHost(to),
                            max_words: most,
                        }));
                        (PlanStep::ToImage { queue: QUEUE, from: *from, to: own }, copy)
                    }
                    None => {
                        let own = buffer(&mut plan, input.len(), BufferMemory::Private, "buffer of a shader");
                        match input.image {
                            // A texel buffer is bound as an image.
                            Some(texels) => {
                                add_image(&mut plan, texels.to_image(Some(own)));
                            }
                            None => bindings.push(own),
                        }
                        initialized.push(ReadBuffer {
                            on_device: own,
                            expected: ExpectedWords::OnHost(*from),
                            max_words: input.len(),
                        });
                        let copy = to.map(|to| PlanStep::Copy { queue: QUEUE, from: own, to });
                        checked.extend(to.map(|to| ReadBuffer {
                            on_device: own,
                            expected: ExpectedWords::OnHost(to),
                            max_words: most,
                        }));
                        (PlanStep::Copy { queue: QUEUE, from: *from, to: own }, copy)
                    }
                };
                steps.prepare.push(initialize);
                let to_host = to.map(|buffer| PlanStep::ToHost { queue: QUEUE, buffer });
                steps.read_back.extend(copy.zip(to_host).map(<[PlanStep; 2]>::from));
                back.extend(to);
            }
            if let Some(hammer) = stress {
                let scratch = buffer(&mut plan, hammer.scratch_words(), BufferMemory::Device, "scratch");
                steps.run.push(hammer.dispatch_step(QUEUE, STRESS_KERNEL, scratch));
            }
            steps.run.push(PlanStep::Dispatch {
                queue: QUEUE,
                kernel: KernelId(0),
                workgroups: shader.grid[0],
                bindings,
                push_constants: shader.push.clone(),
            });
            canaries.add_canary(&mut plan, &mut steps);
            prepare.extend(steps.prepare);
            run.extend(steps.run);
            read_back.extend(steps.read_back.into_iter().flatten());
            read.push(back);
        }
        prepare.push(PlanStep::Barrier { queue: QUEUE });
        run.push(PlanStep::Barrier { queue: QUEUE });
        if !image_checks.is_empty() {
            image_checks.push(PlanStep::Barrier { queue: QUEUE });
            prepare.extend(image_checks);
        }
        let initialized_at = prepare.len();
        // No barriers between the dispatches: they use different buffers, and may overlap.
        plan.steps = prepare.into_iter().chain(run).chain(read_back).collect();
        let mut checks = Vec::new();
        for (buffers, is_initial) in [(initialized, true), (checked, false)] {
            let at = if is_initial { initialized_at } else { plan.steps.len() };
            if !verified {
                continue;
            }
            let check = ReadbackCheck::insert_into_plan(&mut plan, QUEUE, &buffers, at);
            let words = buffers.iter().map(|buffer| buffer.max_words).collect();
            checks.extend(check.map(|check| (check, words)));
        }
        let hammers = dispatch_steps_of(&plan, STRESS_KERNEL);
        canaries.steps = dispatch_steps_of(&plan, canaries::KERNEL);
        let mark = CompletionMarker::add_to_plan(&mut plan, QUEUE);
        ShaderPlanLayout {
            plan,
            readback_buffers: read,
            initial,
            initial_images: filled,
            stress_steps: hammers,
            canaries,
            checks,
            marker: mark,
        }
    }

    /// Writes poison to the memory that the host reads.
    ///
    /// The host does it, because a device that skips a submission would skip a fill too and leave earlier
    /// contents.
    fn poison_readback(&self, prepared: &mut dyn Prepared) -> Result<(), DeviceError> {
        let filled = self.initial_images.iter().map(|(buffer, _)| buffer);
        for buffer in self.readback_buffers.iter().flatten().chain(filled) {
            prepared.write(*buffer)?.fill(POISON);
        }
        Ok(())
    }

    /// Returns everything that the host reads after a submission.
    fn read_prefixes(&self) -> Vec<BufferPrefix> {
        let contents = self.readback_buffers.iter().flatten();
        let images = self.initial_images.iter().map(|(buffer, _)| buffer);
        let buffers = contents.chain(images).copied().chain(self.canaries.read_buffers());
        let sums = self.checks.iter().map(|(check, _)| check.sums());
        buffers.map(BufferPrefix::whole).chain(self.marker.prefixes()).chain(sums).collect()
    }

    /// Compares the copied words of a submission with the requested execution.
    ///
    /// # Errors
    /// If a buffer was not copied.
    fn check_execution(
        &self,
        shader: &Shader,
        copied: &HostCopy,
        submission: u64,
    ) -> Result<Execution, DeviceError> {
        let execution = self.canaries.check_execution(copied, submission)?;
        if execution != Execution::AsRequested {
            return Ok(execution);
        }
        for (check, _) in &self.checks {
            if !check.matches(copied)? {
                return Ok(Execution::Misread);
            }
        }
        // Every image had its initial contents before the shader.
        for (buffer, number) in &self.initial_images {
            let input = shader.buffers.get(*number);
            let mut initial = input.map(ShaderInput::words).unwrap_or_default();
            // The copy leaves the padding of the last word.
            if let Some(image) = input.and_then(|input| input.image) {
                let image = image.to_image(None);
                initial.truncate((image.shape.texel_count() * image.format.texel_bytes() / 4) as usize);
            }
            if copied.words(*buffer)?.get(..initial.len()) != Some(&initial) {
                return Ok(Execution::Incomplete);
            }
        }
        Ok(Execution::AsRequested)
    }
}

fn dispatch_steps_of(plan: &Plan, wanted: KernelId) -> Vec<usize> {
    let is_one = |step: &PlanStep| matches!(step, PlanStep::Dispatch { kernel, .. } if *kernel == wanted);
    (0..).zip(&plan.steps).filter(|(_, step)| is_one(step)).map(|(at, _)| at).collect()
}

fn add_image(plan: &mut Plan, image: Image) -> ImageId {
    plan.images.push(image);
    ImageId(plan.images.len() as u32 - 1)
}

/// Runs a shader; calls `on_run` after each submission, and ends at a break.
///
/// Returns the observation, and the cause that ended the run early. After [`Cause::TimedOut`] the device must
/// not be destroyed.
pub fn run(
    device: &dyn Device,
    shader: &Shader,
    settings: &ShaderSettings,
    on_run: &mut dyn FnMut(&dyn Fn() -> ShaderObservations) -> ControlFlow<()>,
) -> (ShaderObservations, Option<Cause>) {
    let written: Vec<&ShaderInput> = shader.buffers.iter().filter(|input| !input.uniform).collect();
    let initial = written.iter().map(|input| input.words()).collect();
    let mut counted = ContentCounts::new(initial, &settings.watched);
    let ended = run_dispatches(device, shader, settings, &mut counted, on_run);
    (counted.observations(), ended.err())
}

fn run_dispatches(
    device: &dyn Device,
    shader: &Shader,
    settings: &ShaderSettings,
    counted: &mut ContentCounts,
    on_run: &mut dyn FnMut(&dyn Fn() -> ShaderObservations) -> ControlFlow<()>,
) -> Result<(), Cause> {
    let words: u64 = shader.buffers.iter().map(ShaderInput::len).sum();
    let max_dispatches =
        if shader.has_images() { 1 } else { (SUBMISSION_WORDS / words.max(1)).clamp(1, MAX_DISPATCHES) };
    let mut stress = StressDispatch::new(settings.seed, &settings.stress, device.capabilities());
    let since = Instant::now();
    // The first submission has one dispatch: the driver compiles the shader during it, and its duration is
    // unknown.
    let mut dispatches = 1;
    let verified = needs_readback_check(device.capabilities());
    let mut layout = ShaderPlanLayout::new(shader, dispatches, stress.as_ref(), 0, verified);
    let mut prepared = prepare(device, shader, &layout)?;
    let mut copied = initial_copy(shader, &layout);
    let mut took = Duration::ZERO;
    let mut is_copy_counted = false;
    for submission in 0_u64.. {
        if std::mem::take(&mut is_copy_counted) && !copied.is_unchanged(prepared.as_mut())? {
            counted.record_incomplete(Execution::Misread);
        }
        let left = settings.instances.map(|wanted| wanted.saturating_sub(counted.dispatches()));
        // One dispatch is always made: preparing it may take longer than the time.
        let late = submission > 0 && settings.time.is_some_and(|time| since.elapsed() >= time);
        if left == Some(0) || late || settings.time.is_none() && left.is_none() {
            break;
        }
        // The duration of the second submission determines the size of later ones. The plan is rebuilt at
        // powers of two: a device that omits every nth command then omits different ones.
        if submission >= 2 && submission.is_power_of_two() {
            if submission == 2 {
                let fits = SUBMISSION_TIME.as_micros() / took.as_micros().max(1);
                let fits = u64::try_from(fits).unwrap_or(u64::MAX);
                dispatches = max_dispatches.min(fits).min(left.unwrap_or(u64::MAX)).max(1);
            }
            let turn = submission.ilog2() as usize;
            layout = ShaderPlanLayout::new(shader, dispatches, stress.as_ref(), turn, verified);
            prepared = prepare(device, shader, &layout)?;
            copied = initial_copy(shader, &layout);
        }
        device.reseed(settings.seed.wrapping_add(submission));
        if submission % REDRAW_INTERVAL == 0
            && let Some(hammer) = &mut stress
        {
            hammer.sample_parameters();
            for step in &layout.stress_steps {
                hammer.set_parameters(prepared.as_mut(), *step)?;
            }
        }
        layout.poison_readback(prepared.as_mut())?;
        layout.canaries.set_input(prepared.as_mut(), submission)?;
        for (check, words) in &mut layout.checks {
            let range = |words: &u64| WordRange::first_words(u32::try_from(*words).unwrap_or(u32::MAX));
            check.set_ranges(prepared.as_mut(), words.iter().map(range))?;
        }
        layout.marker.clear(prepared.as_mut())?;
        let began = Instant::now();
        if let Err(cause) = submit_and_wait(prepared.as_mut(), settings.submission_timeout) {
            if !matches!(cause, Cause::NullDevice) {
                // Its memory may stay in use, and destroying it would block forever.
                std::mem::forget(prepared);
            }
            return Err(cause);
        }
        took = began.elapsed();
        counted.add_time(took);
        copied.update(prepared.as_mut(), layout.read_prefixes())?;
        let written = layout.marker.is_written(&copied)?;
        let execution = layout.check_execution(shader, &copied, submission)?;
        let is_complete = execution == Execution::AsRequested;
        if written && !is_complete {
            counted.record_incomplete(execution);
        }
        for back in layout.readback_buffers.iter().take(left.map_or(usize::MAX, |left| left as usize)) {
            // Without contents, a dispatch counts as not executed.
            count_contents(&copied, if written && is_complete { back } else { &[] }, counted)?;
        }
        // The memory is compared with the copy at the latest time.
        is_copy_counted = written && is_complete;
        if on_run(&|| counted.observations()).is_break() {
            break;
        }
    }
    if is_copy_counted && !copied.is_unchanged(prepared.as_mut())? {
        counted.record_incomplete(Execution::Misread);
    }
    Ok(())
}

/// Prepares a plan and writes the initial contents.
fn prepare<'d>(
    device: &'d dyn Device,
    shader: &Shader,
    layout: &ShaderPlanLayout,
) -> Result<Box<dyn Prepared + 'd>, DeviceError> {
    let mut prepared = device.prepare(&layout.plan)?;
    for (input, buffer) in shader.buffers.iter().zip(&layout.initial) {
        for (place, word) in prepared.write(*buffer)?.iter_mut().zip(input.words()) {
            *place = word;
        }
    }
    Ok(prepared)
}

/// Returns a copy that has the initial contents only, with which checksums of the device are compared.
fn initial_copy(shader: &Shader, layout: &ShaderPlanLayout) -> HostCopy {
    let mut copied = HostCopy::default();
    for (input, buffer) in shader.buffers.iter().zip(&layout.initial) {
        copied.insert(*buffer, input.words());
    }
    copied
}

/// Counts the contents after a dispatch; without read-back buffers, as not executed.
fn count_contents(
    copied: &HostCopy,
    back: &[BufferId],
    counted: &mut ContentCounts,
) -> Result<(), DeviceError> {
    let mut all = counted.empty_contents();
    for buffer in back {
        all.add(copied.words(*buffer)?);
    }
    counted.count_contents(all, POISON);
    Ok(())
}
