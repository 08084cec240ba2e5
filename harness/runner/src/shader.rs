//! Shaders of users on a device: one is dispatched with its inputs again and again, beside dispatches that keep memory busy, and
//! the contents that its buffers have behind each dispatch are counted.
//!
//! The module goes to the device as it is; only names and numbers of its interface stand beside it ([`plan::Interface`]). Every
//! dispatch finds the buffers as the inputs say, and what it leaves in them is one outcome. Contents are kept apart as long as
//! there is room; what they differ in is told element by element. No model is known here.

mod canaries;
mod contents;
mod hammer;
mod serve;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use plan::{
    Bound, Buffer, BufferId, Device, DeviceError, Image, ImageFormat, ImageId, ImageShape, Interface, Kernel,
    KernelId, Memory, Plan, Prepared, Queue, QueueId, Step,
};
use serde::{Deserialize, Serialize};

use crate::error::Cause;
use crate::mark::Mark;
use crate::stress::Stress;
use canaries::{Canaries, Steps};
use contents::Counted;
use hammer::Hammer;

pub use contents::{Change, Content, MAX_ROWS, Seen};
pub use serve::{Answer, Job, serve};

/// A shader with its inputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shader {
    /// SPIR-V words, as they come from whoever compiled them.
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

/// A buffer and what it holds before each dispatch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Descriptor set, binding, and the element of an array of buffers.
    pub at: [u32; 3],
    /// A uniform buffer: nobody writes it.
    pub uniform: bool,
    /// The shape and the format of an image, whose words are its texels.
    pub image: Option<InputImage>,
    /// Contents: how often a word stands in a row, and the word.
    pub runs: Vec<(u64, u32)>,
}

/// An image of texels of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputImage {
    /// Its shape.
    pub shape: InputShape,
    /// The number of its format in SPIR-V's list.
    pub format: u32,
}

/// The shape of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputShape {
    /// Texels in a row.
    Row,
    /// Rows of so many texels.
    Rows(u32),
    /// A buffer of texels.
    Texels,
}

impl Input {
    /// A buffer with these words.
    pub fn new(at: [u32; 3], uniform: bool, words: &[u32]) -> Input {
        let runs = words.chunk_by(|left, right| left == right);
        let runs = runs.filter_map(|run| Some((run.len() as u64, *run.first()?))).collect();
        Input { at, uniform, image: None, runs }
    }

    /// Its words.
    pub fn words(&self) -> Vec<u32> {
        let run = |(count, word): &(u64, u32)| std::iter::repeat_n(*word, *count as usize);
        self.runs.iter().flat_map(run).collect()
    }

    fn len(&self) -> u64 {
        self.runs.iter().map(|(count, _)| *count).sum()
    }
}

impl Shader {
    /// The kernel of its plans.
    pub fn kernel(&self) -> Kernel {
        let bound = |input: &&Input| {
            let [set, binding, element] = input.at;
            Bound { set, binding, element, uniform: input.uniform }
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

    /// The plan of a single dispatch with nothing beside it, which a device takes or says what it lacks for.
    pub fn plan(&self) -> Plan {
        Layout::new(self, 1, None, 0).plan
    }
}

/// How a shader is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Dispatches at most.
    pub instances: Option<u64>,
    /// Time for them.
    pub time: Option<Duration>,
    /// Decides what the dispatches beside it do, and what the device itself draws.
    pub seed: u64,
    /// What keeps memory busy.
    pub stress: Stress,
    /// How long a submission may take.
    pub patience: Duration,
    /// Words whose values are told of all contents: number of the buffer, and of the word in it.
    pub watched: Vec<(u32, u64)>,
}

const QUEUE: QueueId = QueueId(0);
/// What buffers for the host hold before contents are copied there.
const POISON: u32 = 0xa5a5_5a5a;
/// Words of all buffers of a submission at most: a few dispatches of small ones share one.
const SUBMISSION_WORDS: u64 = 1 << 18;
/// Dispatches of a submission at most.
const MOST_DISPATCHES: u64 = 16;
/// What a submission aims at.
const SUBMISSION: Duration = Duration::from_millis(20);
/// Submissions from one drawing of what the dispatches beside do to the next.
const REDRAWN: u64 = 8;

/// Where everything lies in a plan.
struct Layout {
    plan: Plan,
    /// By dispatch the buffers that are read back, in the order of the shader's own that it may write.
    read: Vec<Vec<BufferId>>,
    /// The buffers that hold what the shader's hold at first.
    initial: Vec<BufferId>,
    /// The steps that keep memory busy.
    hammers: Vec<usize>,
    /// What says that nothing of a submission was left out.
    canaries: Canaries,
    /// What says that a submission was executed to its end.
    mark: Mark,
}

/// The kernel that keeps memory busy, behind the shader's and that of the canaries.
const HAMMER: KernelId = KernelId(2);

impl Layout {
    /// A plan of so many dispatches, each with buffers of its own; of a single one where there are images, which belong to kernels.
    fn new(shader: &Shader, dispatches: u64, hammer: Option<&Hammer>, turn: usize) -> Layout {
        let mut plan = Plan { queues: vec![Queue { family: 0 }], ..Plan::default() };
        plan.kernels.push(shader.kernel());
        let buffer = |plan: &mut Plan, words: u64, memory, name| {
            plan.buffers.push(Buffer { words: words.max(1), memory, name });
            BufferId(plan.buffers.len() as u32 - 1)
        };
        let initial: Vec<BufferId> = (shader.buffers.iter())
            .map(|input| buffer(&mut plan, input.len(), Memory::Shared, "contents of a buffer at first"))
            .collect();
        let mut canaries = Canaries::new(&mut plan, shader.grid[0], turn);
        plan.kernels.extend(hammer.map(Hammer::kernel));
        let (mut prepare, mut run, mut keep) = (Vec::new(), Vec::new(), Vec::new());
        let mut read = Vec::new();
        for _ in 0..dispatches {
            let mut steps = Steps::default();
            let mut bindings = Vec::new();
            let mut back = Vec::new();
            for (input, from) in shader.buffers.iter().zip(&initial) {
                let to = (!input.uniform).then(|| {
                    buffer(&mut plan, input.len(), Memory::Readback, "what a shader left, for the host")
                });
                let (ready, copy) = match input.image.filter(|image| image.shape != InputShape::Texels) {
                    Some(image) => {
                        let own = picture(&mut plan, image, input.len(), None);
                        let copy = to.map(|to| Step::FromImage { queue: QUEUE, from: own, to });
                        (Step::ToImage { queue: QUEUE, from: *from, to: own }, copy)
                    }
                    None => {
                        let own = buffer(&mut plan, input.len(), Memory::Device, "buffer of a shader");
                        match input.image {
                            Some(texels) => {
                                picture(&mut plan, texels, input.len(), Some(own));
                            }
                            None => bindings.push(own),
                        }
                        let copy = to.map(|to| Step::Copy { queue: QUEUE, from: own, to });
                        (Step::Copy { queue: QUEUE, from: *from, to: own }, copy)
                    }
                };
                steps.prepare.push(ready);
                let shown = to.map(|buffer| Step::ToHost { queue: QUEUE, buffer });
                steps.keep.extend(copy.zip(shown).map(<[Step; 2]>::from));
                back.extend(to);
            }
            if let Some(hammer) = hammer {
                let scratch = buffer(&mut plan, hammer.scratch_words(), Memory::Device, "scratch");
                steps.run.push(hammer.step(QUEUE, HAMMER, scratch));
            }
            steps.run.push(Step::Dispatch {
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
        prepare.push(Step::Barrier { queue: QUEUE });
        run.push(Step::Barrier { queue: QUEUE });
        plan.steps = prepare.into_iter().chain(run).chain(keep).collect();
        let hammers = dispatches_of(&plan, HAMMER);
        canaries.steps = dispatches_of(&plan, canaries::KERNEL);
        let mark = Mark::add(&mut plan, QUEUE);
        Layout { plan, read, initial, hammers, canaries, mark }
    }
}

/// The steps that dispatch a kernel.
fn dispatches_of(plan: &Plan, wanted: KernelId) -> Vec<usize> {
    let is_one = |step: &Step| matches!(step, Step::Dispatch { kernel, .. } if *kernel == wanted);
    (0..).zip(&plan.steps).filter(|(_, step)| is_one(step)).map(|(at, _)| at).collect()
}

/// Adds an image, or the texels of a buffer.
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
    // Formats that are not known here come from nobody: they are refused where shaders are read.
    let format = ImageFormat::of_spirv(image.format).unwrap_or(ImageFormat::Unsigned);
    plan.images.push(Image { shape, format, memory: Memory::Device, name: "image of a shader" });
    ImageId(plan.images.len() as u32 - 1)
}

/// Runs a shader.
///
/// `on_run` is called after each submission; a break ends the run.
///
/// # Errors
/// Why it ended early, with what was seen until then. After [`Cause::TimedOut`] the device must not be destroyed.
pub fn run(
    device: &dyn Device,
    shader: &Shader,
    settings: &Settings,
    on_run: &mut dyn FnMut(&dyn Fn() -> Seen) -> ControlFlow<()>,
) -> (Seen, Option<Cause>) {
    let written: Vec<&Input> = shader.buffers.iter().filter(|input| !input.uniform).collect();
    let initial = written.iter().map(|input| input.words()).collect();
    let mut counted = Counted::new(initial, &settings.watched);
    let ended = go(device, shader, settings, &mut counted, on_run);
    (counted.seen(), ended.err())
}

fn go(
    device: &dyn Device,
    shader: &Shader,
    settings: &Settings,
    counted: &mut Counted,
    on_run: &mut dyn FnMut(&dyn Fn() -> Seen) -> ControlFlow<()>,
) -> Result<(), Cause> {
    let words: u64 = shader.buffers.iter().map(Input::len).sum();
    let has_images = shader.buffers.iter().any(|input| input.image.is_some());
    let most = if has_images { 1 } else { (SUBMISSION_WORDS / words.max(1)).clamp(1, MOST_DISPATCHES) };
    let mut hammer = Hammer::new(settings.seed, &settings.stress, device.capabilities());
    let since = Instant::now();
    // The first one is alone: it is compiled then, and nobody knows yet how long it takes.
    let mut dispatches = 1;
    let mut layout = Layout::new(shader, dispatches, hammer.as_ref(), 0);
    let mut prepared = prepare(device, shader, &layout)?;
    let mut took = Duration::ZERO;
    for submission in 0_u64.. {
        let left = settings.instances.map(|wanted| wanted.saturating_sub(counted.dispatches()));
        let late = settings.time.is_some_and(|time| since.elapsed() >= time);
        if left == Some(0) || late || settings.time.is_none() && left.is_none() {
            break;
        }
        // The second tells how long one takes; all later ones are as large as that allows. They are recorded anew now and then: a
        // device that leaves out one command in so many leaves out others each time.
        if submission >= 2 && submission.is_power_of_two() {
            if submission == 2 {
                let fits = SUBMISSION.as_micros() / took.as_micros().max(1);
                let fits = u64::try_from(fits).unwrap_or(u64::MAX);
                dispatches = most.min(fits).min(left.unwrap_or(u64::MAX)).max(1);
            }
            layout = Layout::new(shader, dispatches, hammer.as_ref(), submission.ilog2() as usize);
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
        // By the host: a device that skips a submission would skip that as well, and leave what an earlier one has left.
        for buffer in layout.read.iter().flatten() {
            prepared.write(*buffer)?.fill(POISON);
        }
        layout.canaries.ask(prepared.as_mut(), submission)?;
        layout.mark.clear(prepared.as_mut())?;
        let began = Instant::now();
        if let Err(cause) = once(prepared.as_mut(), settings.patience) {
            if !matches!(cause, Cause::NullDevice) {
                // Its memory may be in use for good: to destroy it would wait for ever.
                std::mem::forget(prepared);
            }
            return Err(cause);
        }
        took = began.elapsed();
        counted.took(took);
        let written = layout.mark.is_written(prepared.as_mut())?;
        let whole = layout.canaries.answered(prepared.as_mut(), submission)?;
        if written && !whole {
            counted.left_out();
        }
        for back in layout.read.iter().take(left.map_or(usize::MAX, |left| left as usize)) {
            count(prepared.as_mut(), if written && whole { back } else { &[] }, counted)?;
        }
        if on_run(&|| counted.seen()).is_break() {
            break;
        }
    }
    Ok(())
}

/// Prepares a plan, with the buffers' first contents in place.
fn prepare<'d>(
    device: &'d dyn Device,
    shader: &Shader,
    layout: &Layout,
) -> Result<Box<dyn Prepared + 'd>, DeviceError> {
    let mut prepared = device.prepare(&layout.plan)?;
    for (input, buffer) in shader.buffers.iter().zip(&layout.initial) {
        for (place, word) in prepared.write(*buffer)?.iter_mut().zip(input.words()) {
            *place = word;
        }
    }
    Ok(prepared)
}

/// One submission, waited for.
fn once(prepared: &mut dyn Prepared, patience: Duration) -> Result<(), Cause> {
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

/// Counts what a dispatch left; where nothing is read back, as not executed.
fn count(prepared: &mut dyn Prepared, back: &[BufferId], counted: &mut Counted) -> Result<(), DeviceError> {
    let mut all = counted.room();
    for buffer in back {
        all.add(prepared.read(*buffer)?);
    }
    counted.add(all, POISON);
    Ok(())
}
