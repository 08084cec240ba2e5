//! User shaders on a device: dispatches a shader repeatedly next to dispatches of memory stress, and counts
//! its final buffer contents.
//!
//! The module goes to the device unchanged, with the names and numbers of its interface
//! ([`plan::Interface`]). Every dispatch starts with the input contents, and its final contents are one
//! outcome. Different contents are counted separately up to a limit, and reported by their differences. No
//! memory model is used here.

mod canaries;
mod contents;
mod hammer;
mod serve;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use plan::{
    Buffer, BufferBinding, BufferId, BufferMemory, Device, DeviceError, Image, ImageFormat, ImageId,
    ImageShape, Interface, Kernel, KernelId, Plan, PlanStep, Prepared, Queue, QueueId,
};
use serde::{Deserialize, Serialize};
use shaders::checksum::WordRange;

use crate::dispatch::Execution;
use crate::error::Cause;
use crate::mark::Mark;
use crate::readback::{ReadBuffer, ReadbackCheck};
use crate::run::is_read_back;
use crate::stress::Stress;
use canaries::{Canaries, Steps};
use contents::ContentCounts;
use hammer::Hammer;

pub use contents::{Content, MAX_ROWS, ShaderObservations, WordChange};
pub use serve::{Answer, UserShaderJob, serve};

/// A shader with its inputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shader {
    /// SPIR-V words.
    pub words: Vec<u32>,
    /// The entry point.
    pub entry: String,
    /// Workgroups in x, y and z.
    pub grid: [u32; 3],
    /// Specialization constants: ids and values as bytes.
    pub constants: Vec<(u32, Vec<u8>)>,
    /// Push constants.
    pub push: Vec<u8>,
    /// Buffers, in the order of their bindings.
    pub buffers: Vec<Input>,
}

/// A buffer with its contents before each dispatch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Descriptor set, binding, and the index in an array of buffers.
    pub at: [u32; 3],
    /// A uniform buffer, which the shader cannot write.
    pub uniform: bool,
    /// Shape and format of an image, whose texels are the words.
    pub image: Option<InputImage>,
    /// Run-length encoded contents: number of repetitions, and the word.
    pub runs: Vec<(u64, u32)>,
}

/// An image of 32-bit texels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputImage {
    /// Its shape.
    pub shape: InputShape,
    /// The number of its format in SPIR-V.
    pub format: u32,
}

/// The shape of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputShape {
    /// Texels in a row.
    Row,
    /// Rows with this many texels.
    Rows(u32),
    /// A texel buffer.
    Texels,
}

impl Input {
    /// Creates a buffer with these words.
    pub fn new(at: [u32; 3], uniform: bool, words: &[u32]) -> Input {
        let runs = words.chunk_by(|left, right| left == right);
        let runs = runs.filter_map(|run| Some((run.len() as u64, *run.first()?))).collect();
        Input { at, uniform, image: None, runs }
    }

    /// Returns the words.
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
        let bound = |input: &&Input| {
            let [set, binding, element] = input.at;
            BufferBinding { set, binding, element, uniform: input.uniform }
        };
        let (images, buffers): (Vec<&Input>, Vec<&Input>) =
            self.buffers.iter().partition(|input| input.image.is_some());
        let [_, y, z] = self.grid;
        Kernel {
            words: self.words.clone(),
            bindings: buffers.len() as u32,
            images: (0..images.len() as u32).map(ImageId).collect(),
            push_constant_bytes: self.push.len() as u32,
            interface: Some(Interface {
                entry: self.entry.clone(),
                bindings: buffers.iter().map(bound).collect(),
                images: images.iter().map(|image| (image.at[0], image.at[1])).collect(),
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

/// The settings of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ShaderSettings {
    /// The maximum number of dispatches.
    pub instances: Option<u64>,
    /// Time limit of the run.
    pub time: Option<Duration>,
    /// The seed of the stress dispatches and of the simulated device.
    pub seed: u64,
    /// The stress.
    pub stress: Stress,
    /// Time limit of a submission.
    pub patience: Duration,
    /// Words whose values are reported for all contents, each as buffer and word index.
    pub watched: Vec<(u32, u64)>,
}

const QUEUE: QueueId = QueueId(0);
/// The content of read-back buffers before contents are copied there.
const POISON: u32 = 0xa5a5_5a5a;
/// The maximum words of all buffers of a submission. Several dispatches of small buffers share one.
const SUBMISSION_WORDS: u64 = 1 << 18;
/// The maximum number of dispatches in a submission.
const MOST_DISPATCHES: u64 = 16;
/// The target duration of a submission.
const SUBMISSION: Duration = Duration::from_millis(20);
/// Submissions between two draws of stress parameters.
const REDRAWN: u64 = 8;

/// The positions of all parts in a plan.
struct ShaderPlanLayout {
    plan: Plan,
    /// For each dispatch its read-back buffers, in the order of the shader's writable ones.
    read: Vec<Vec<BufferId>>,
    /// The buffers with the initial contents.
    initial: Vec<BufferId>,
    /// The contents of images before the shader, for the host, with the indexes of their inputs.
    filled: Vec<(BufferId, usize)>,
    /// The steps that generate memory stress.
    hammers: Vec<usize>,
    /// Detects partial or repeated execution of a submission.
    canaries: Canaries,
    /// The checksums of all read-back buffers, and the words of each.
    readback: Option<ReadbackCheck>,
    checked: Vec<u64>,
    /// The marker for complete execution of a submission.
    mark: Mark,
}

/// The kernel that generates memory stress, after those of the shader and the canaries.
const HAMMER: KernelId = KernelId(2);

impl ShaderPlanLayout {
    /// Builds a plan with this many dispatches, each with its own buffers. It must be one if there are
    /// images, because they belong to kernels. If `verified`, the device computes checksums of the contents.
    fn new(
        shader: &Shader,
        dispatches: u64,
        hammer: Option<&Hammer>,
        turn: usize,
        verified: bool,
    ) -> ShaderPlanLayout {
        let mut plan = Plan { queues: vec![Queue { family: 0 }], ..Plan::default() };
        plan.kernels.push(shader.kernel());
        let buffer = |plan: &mut Plan, words: u64, memory, name| {
            plan.buffers.push(Buffer { words: words.max(1), memory, name });
            BufferId(plan.buffers.len() as u32 - 1)
        };
        let initial: Vec<BufferId> = (shader.buffers.iter())
            .map(|input| buffer(&mut plan, input.len(), BufferMemory::Shared, "initial contents of a buffer"))
            .collect();
        let mut canaries = Canaries::new(&mut plan, shader.grid[0], turn, shader.has_images());
        plan.kernels.extend(hammer.map(Hammer::kernel));
        let (mut prepare, mut run, mut keep) = (Vec::new(), Vec::new(), Vec::new());
        let mut read = Vec::new();
        let mut checked = Vec::new();
        let (mut filled, mut look) = (Vec::new(), Vec::new());
        for _ in 0..dispatches {
            let mut steps = Steps::default();
            let mut bindings = Vec::new();
            let mut back = Vec::new();
            for (number, (input, from)) in shader.buffers.iter().zip(&initial).enumerate() {
                let to = (!input.uniform).then(|| {
                    buffer(
                        &mut plan,
                        input.len(),
                        BufferMemory::Readback,
                        "contents after a shader, for the host",
                    )
                });
                let most = input.len().max(1);
                let (ready, copy) = match input.image.filter(|image| image.shape != InputShape::Texels) {
                    Some(image) => {
                        let own = picture(&mut plan, image, input.len(), None);
                        let name = "texels before a shader, for the host";
                        let before = buffer(&mut plan, input.len(), BufferMemory::Readback, name);
                        filled.push((before, number));
                        look.push(PlanStep::FromImage { queue: QUEUE, from: own, to: before });
                        look.push(PlanStep::ToHost { queue: QUEUE, buffer: before });
                        let copy = to.map(|to| PlanStep::FromImage { queue: QUEUE, from: own, to });
                        // The device reads texels from their copy.
                        checked.extend(to.map(|to| ReadBuffer { on_device: to, on_host: to, most }));
                        (PlanStep::ToImage { queue: QUEUE, from: *from, to: own }, copy)
                    }
                    None => {
                        let own = buffer(&mut plan, input.len(), BufferMemory::Device, "buffer of a shader");
                        match input.image {
                            // A texel buffer is bound as an image.
                            Some(texels) => {
                                picture(&mut plan, texels, input.len(), Some(own));
                            }
                            None => bindings.push(own),
                        }
                        let copy = to.map(|to| PlanStep::Copy { queue: QUEUE, from: own, to });
                        checked.extend(to.map(|to| ReadBuffer { on_device: own, on_host: to, most }));
                        (PlanStep::Copy { queue: QUEUE, from: *from, to: own }, copy)
                    }
                };
                steps.prepare.push(ready);
                let shown = to.map(|buffer| PlanStep::ToHost { queue: QUEUE, buffer });
                steps.keep.extend(copy.zip(shown).map(<[PlanStep; 2]>::from));
                back.extend(to);
            }
            if let Some(hammer) = hammer {
                let scratch = buffer(&mut plan, hammer.scratch_words(), BufferMemory::Device, "scratch");
                steps.run.push(hammer.step(QUEUE, HAMMER, scratch));
            }
            steps.run.push(PlanStep::Dispatch {
                queue: QUEUE,
                kernel: KernelId(0),
                workgroups: shader.grid[0],
                bindings,
                push_constants: shader.push.clone(),
            });
            canaries.add(&mut plan, &mut steps);
            prepare.extend(steps.prepare);
            run.extend(steps.run);
            keep.extend(steps.keep.into_iter().flatten());
            read.push(back);
        }
        prepare.push(PlanStep::Barrier { queue: QUEUE });
        run.push(PlanStep::Barrier { queue: QUEUE });
        if !look.is_empty() {
            look.push(PlanStep::Barrier { queue: QUEUE });
            prepare.extend(look);
        }
        // No barriers between the dispatches: they use different buffers, and may overlap.
        plan.steps = prepare.into_iter().chain(run).chain(keep).collect();
        let hammers = dispatches_of(&plan, HAMMER);
        canaries.steps = dispatches_of(&plan, canaries::KERNEL);
        if !verified {
            checked.clear();
        }
        let readback = ReadbackCheck::add(&mut plan, QUEUE, &checked);
        let checked = checked.iter().map(|buffer| buffer.most).collect();
        let mark = Mark::add(&mut plan, QUEUE);
        ShaderPlanLayout { plan, read, initial, filled, hammers, canaries, readback, checked, mark }
    }

    /// Writes poison to the memory that the host reads.
    ///
    /// The host does it, because a device that skips a submission would skip a fill too and leave earlier
    /// contents.
    fn poison(&self, prepared: &mut dyn Prepared) -> Result<(), DeviceError> {
        let filled = self.filled.iter().map(|(buffer, _)| buffer);
        for buffer in self.read.iter().flatten().chain(filled) {
            prepared.write(*buffer)?.fill(POISON);
        }
        Ok(())
    }

    /// Returns true if every image had its initial contents before the shader.
    fn are_filled(&self, shader: &Shader, prepared: &mut dyn Prepared) -> Result<bool, DeviceError> {
        for (buffer, number) in &self.filled {
            let initial = shader.buffers.get(*number).map(Input::words).unwrap_or_default();
            if prepared.read(*buffer)?.get(..initial.len()) != Some(&initial) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns the steps that dispatch a kernel.
fn dispatches_of(plan: &Plan, wanted: KernelId) -> Vec<usize> {
    let is_one = |step: &PlanStep| matches!(step, PlanStep::Dispatch { kernel, .. } if *kernel == wanted);
    (0..).zip(&plan.steps).filter(|(_, step)| is_one(step)).map(|(at, _)| at).collect()
}

/// Adds an image or a texel buffer.
fn picture(plan: &mut Plan, image: InputImage, texels: u64, buffer: Option<BufferId>) -> ImageId {
    let width = texels.max(1) as u32;
    let shape = match (image.shape, buffer) {
        (_, Some(buffer)) => ImageShape::Texels(buffer),
        (InputShape::Rows(width), None) => ImageShape::TwoDimensional {
            width: width.max(1),
            height: texels.div_ceil(width.max(1).into()) as u32,
        },
        (InputShape::Row | InputShape::Texels, None) => ImageShape::OneDimensional { width },
    };
    // Unknown formats are refused when a shader is read, so this default is never used.
    let format = ImageFormat::from_spirv(image.format).unwrap_or(ImageFormat::Unsigned);
    plan.images.push(Image { shape, format, memory: BufferMemory::Device, name: "image of a shader" });
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
    let written: Vec<&Input> = shader.buffers.iter().filter(|input| !input.uniform).collect();
    let initial = written.iter().map(|input| input.words()).collect();
    let mut counted = ContentCounts::new(initial, &settings.watched);
    let ended = run_dispatches(device, shader, settings, &mut counted, on_run);
    (counted.seen(), ended.err())
}

fn run_dispatches(
    device: &dyn Device,
    shader: &Shader,
    settings: &ShaderSettings,
    counted: &mut ContentCounts,
    on_run: &mut dyn FnMut(&dyn Fn() -> ShaderObservations) -> ControlFlow<()>,
) -> Result<(), Cause> {
    let words: u64 = shader.buffers.iter().map(Input::len).sum();
    let most =
        if shader.has_images() { 1 } else { (SUBMISSION_WORDS / words.max(1)).clamp(1, MOST_DISPATCHES) };
    let mut hammer = Hammer::new(settings.seed, &settings.stress, device.capabilities());
    let since = Instant::now();
    // The first submission has one dispatch: the driver compiles the shader during it, and its duration is
    // unknown.
    let mut dispatches = 1;
    let verified = is_read_back(device.capabilities());
    let mut layout = ShaderPlanLayout::new(shader, dispatches, hammer.as_ref(), 0, verified);
    let mut prepared = prepare(device, shader, &layout)?;
    let mut took = Duration::ZERO;
    for submission in 0_u64.. {
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
                let fits = SUBMISSION.as_micros() / took.as_micros().max(1);
                let fits = u64::try_from(fits).unwrap_or(u64::MAX);
                dispatches = most.min(fits).min(left.unwrap_or(u64::MAX)).max(1);
            }
            let turn = submission.ilog2() as usize;
            layout = ShaderPlanLayout::new(shader, dispatches, hammer.as_ref(), turn, verified);
            prepared = prepare(device, shader, &layout)?;
        }
        device.reseed(settings.seed.wrapping_add(submission));
        if submission % REDRAWN == 0
            && let Some(hammer) = &mut hammer
        {
            hammer.draw();
            for step in &layout.hammers {
                hammer.set(prepared.as_mut(), *step)?;
            }
        }
        layout.poison(prepared.as_mut())?;
        layout.canaries.ask(prepared.as_mut(), submission)?;
        if let Some(readback) = &mut layout.readback {
            let range = |words: &u64| WordRange::first_words(u32::try_from(*words).unwrap_or(u32::MAX));
            readback.ask(prepared.as_mut(), layout.checked.iter().map(range))?;
        }
        layout.mark.clear(prepared.as_mut())?;
        let began = Instant::now();
        if let Err(cause) = submit_and_wait(prepared.as_mut(), settings.patience) {
            if !matches!(cause, Cause::NullDevice) {
                // Its memory may stay in use, and destroying it would block forever.
                std::mem::forget(prepared);
            }
            return Err(cause);
        }
        took = began.elapsed();
        counted.took(took);
        let written = layout.mark.is_written(prepared.as_mut())?;
        let mut execution = layout.canaries.execution(prepared.as_mut(), submission)?;
        if execution == Execution::AsAsked
            && let Some(readback) = &layout.readback
            && !readback.matches(prepared.as_mut())?
        {
            execution = Execution::Misread;
        }
        if execution == Execution::AsAsked && !layout.are_filled(shader, prepared.as_mut())? {
            execution = Execution::Incomplete;
        }
        let whole = execution == Execution::AsAsked;
        if written && !whole {
            counted.left_out(execution);
        }
        for back in layout.read.iter().take(left.map_or(usize::MAX, |left| left as usize)) {
            // Without contents, a dispatch counts as not executed.
            count(prepared.as_mut(), if written && whole { back } else { &[] }, counted)?;
        }
        if on_run(&|| counted.seen()).is_break() {
            break;
        }
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

/// Submits and waits.
fn submit_and_wait(prepared: &mut dyn Prepared, patience: Duration) -> Result<(), Cause> {
    prepared.submit()?;
    let since = Instant::now();
    loop {
        let left = patience.saturating_sub(since.elapsed());
        match prepared.poll(left)? {
            plan::Progress::Finished { .. } => return Ok(()),
            plan::Progress::NotExecuted => return Err(Cause::NullDevice),
            plan::Progress::Running if since.elapsed() >= patience => {
                return Err(Cause::TimedOut { after: since.elapsed() });
            }
            plan::Progress::Running => {}
        }
    }
}

/// Counts the contents after a dispatch; without read-back buffers, as not executed.
fn count(
    prepared: &mut dyn Prepared,
    back: &[BufferId],
    counted: &mut ContentCounts,
) -> Result<(), DeviceError> {
    let mut all = counted.room();
    for buffer in back {
        all.add(prepared.read(*buffer)?);
    }
    counted.add(all, POISON);
    Ok(())
}
