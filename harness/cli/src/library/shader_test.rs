//! Tests of shaders on arrays: contents in, contents out, and a finding fails the test.
//!
//! The walk executes every invocation, detects races by happens-before, and yields the contents of the first
//! schedule. A device is used only with [`ShaderTest::on`]. Contents that depend on the schedule are named in [`ShaderTestRun`].
//!
//! Dispatches run in their order on the same memory. Two without a barrier between them must not access the same
//! bytes if one writes. The accesses are those of one walk.

mod device;
mod error;
mod memory;
mod shrink;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use analysis::{EntryOptions, entry_options, finding_place, placed_refusal_text, race_line};
use bytemuck::{NoUninit, Pod, bytes_of, cast_slice_mut};
use campaign::shader::source::{Compilation, load_contents};
use campaign::time_limit::stop_after;
use entry_point::inputs::Sampler;
use entry_point::inputs::{ImageInput, TexelInput};
use entry_point::{AnalysisOptions, DeadlinePredicate, Refusal, ScheduleToken};
use model::{Budget, Model};
use results::wire::{BufferContents, CoverageLimit, RaceLine};
use spirv_reader::SpirvModule;
use walk::texels::unpack_texels;
use walk::{GridReport, RaceVerdict, ResourceAccess, accessed_bytes, accesses_of_byte};

use super::error::Error;
use super::model::AxiomaticModel;
use super::shader::{ShaderModule, source_error};
use memory::{BoundMemory, Hazard, find_hazard};

pub use device::TestDevice;
pub use error::{DispatchAccess, ShaderTestError, SmallestFailure};
pub use memory::PixelFormat;

/// Default limit of a run; see [`ShaderTest::time_limit`].
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Upper bound on the steps of the walk that records the accesses of a dispatch.
const ACCESS_STEPS: u64 = 150_000_000;

/// Dispatches of shaders on arrays, which fail if a shader has a race or other undefined behaviour.
///
/// ```no_run
/// use vk_litmus::{AddressMode, PixelFormat, Sampler, ShaderTest};
///
/// let square = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
/// @compute @workgroup_size(1)
/// fn main(@builtin(workgroup_id) id: vec3u) { data[id.x] *= data[id.x]; }";
/// let mut data = [1_u32, 2, 3, 4];
/// ShaderTest::source("square.wgsl", square).grid([4, 1, 1]).bind(0, 0, &mut data).run()?;
/// assert_eq!(data, [1, 4, 9, 16]);
///
/// let words = std::fs::read("scale.spv")?;
/// ShaderTest::spirv("scale", words)
///     .entry("main")
///     .grid([1, 1, 1])
///     .subgroup_size(32)
///     .specialization(0, 64)
///     .push(&[2_u32, 4])
///     .bind_read(0, 1, &[0.5_f32; 4])
///     .bind(0, 0, &mut data)
///     .schedules(100)
///     .replay("7:0")
///     .step_limit(1 << 30)
///     .seed(7)
///     .exact_floats()
///     .time_limit(std::time::Duration::from_secs(1))
///     .run()?;
///
/// // A texture, its sampler and a storage image; the second dispatch reads what the first one left.
/// let (mut blurred, mut other) = ([0_u8; 4 * 64], [3_u32]);
/// ShaderTest::spirv("blur", std::fs::read("blur.spv")?)
///     .bind_texture(0, 0, PixelFormat::Rgba8Unorm, [8, 8, 1], &[255_u8; 4 * 64])
///     .bind_sampler(0, 1, Sampler { is_linear: true, address_mode: AddressMode::Clamp })
///     .bind_image(0, 2, PixelFormat::Rgba8Unorm, [8, 8, 1], &mut blurred)
///     .then(ShaderTest::spirv("sum", std::fs::read("sum.spv")?).rebind(0, 0, (0, 2)).bind(0, 1, &mut data))
///     .then_unsynchronized(ShaderTest::source("square.wgsl", square).bind(0, 0, &mut other))
///     .run()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShaderTest<'a> {
    earlier: Vec<Dispatch>,
    last: Dispatch,
    bindings: Vec<Binding<'a>>,
    time_limit: Duration,
    device: Option<TestDevice>,
}

/// A set and a binding.
type Descriptor = (u32, u32);
/// The memory of the slices by the first descriptor of each.
type Memory = BTreeMap<Descriptor, BoundMemory>;

#[derive(Debug)]
struct Dispatch {
    shader: Result<ShaderModule, Error>,
    text: Option<String>,
    options: AnalysisOptions,
    /// The text of the token of the only schedule.
    replay: Option<String>,
    /// Descriptors of memory that another one has in earlier dispatches.
    rebound: BTreeMap<Descriptor, Descriptor>,
    is_after_barrier: bool,
}

/// A slice that is bound to a descriptor.
#[derive(Debug)]
struct Binding<'a> {
    /// The number of the dispatch that binds it first.
    dispatch: usize,
    at: Descriptor,
    memory: BoundMemory,
    slice: Option<&'a mut [u8]>,
}

/// A dispatch that no barrier separates from the next one.
struct OpenDispatch {
    number: usize,
    options: AnalysisOptions,
    accesses: BTreeMap<Descriptor, ResourceAccess>,
}

/// A dispatch with its module, which has the entry point.
struct LoadedDispatch {
    file: String,
    text: Option<String>,
    module: SpirvModule,
    options: AnalysisOptions,
    rebound: BTreeMap<Descriptor, Descriptor>,
    is_after_barrier: bool,
}

/// The result of a run besides the contents of the slices.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShaderTestRun {
    /// Verdict and coverage of the last dispatch, as `race --format json` prints them.
    pub line: RaceLine,
    /// Those of the dispatches before it.
    pub earlier: Vec<RaceLine>,
    /// The first element whose contents depend on the schedule although nothing races.
    pub order_dependent: Option<String>,
}

impl<'a> ShaderTest<'a> {
    /// Creates a test of a source; the extension of `file` names its language, as in `scan.wgsl` or `scan.comp`.
    ///
    /// The source is compiled by an installed compiler.
    pub fn source(file: &str, text: &str) -> ShaderTest<'a> {
        let compilation = Compilation::default();
        let mut all = load_contents(file, text.as_bytes(), &compilation).into_iter();
        let shader = match (all.next(), all.next()) {
            (Some(Ok(source)), _) => {
                Ok(ShaderModule { file: file.to_owned(), source, compilation: Some(compilation) })
            }
            (Some(Err(error)), _) => Err(source_error(file, &error)),
            (None, _) => Ok(ShaderModule::from_spirv(file, [])),
        };
        ShaderTest::new(shader, Some(text.to_owned()))
    }

    /// Creates a test of SPIR-V, as words or text; `file` is its name in answers.
    pub fn spirv(file: &str, module: impl Into<Vec<u8>>) -> ShaderTest<'a> {
        ShaderTest::new(Ok(ShaderModule::from_spirv(file, module)), None)
    }

    fn new(shader: Result<ShaderModule, Error>, text: Option<String>) -> ShaderTest<'a> {
        // A test without a grid is one of one workgroup.
        let options = AnalysisOptions { grid: Some([1; 3]), ..AnalysisOptions::default() };
        let rebound = BTreeMap::new();
        let last = Dispatch { shader, text, options, replay: None, rebound, is_after_barrier: true };
        ShaderTest { earlier: Vec::new(), last, bindings: Vec::new(), time_limit: TIME_LIMIT, device: None }
    }

    /// Sets the entry point; needed if there are several.
    #[must_use]
    pub fn entry(mut self, name: &str) -> ShaderTest<'a> {
        self.last.options.entry = Some(name.to_owned());
        self
    }

    /// Sets the number of workgroups [default: one].
    #[must_use]
    pub fn grid(mut self, workgroups: [u32; 3]) -> ShaderTest<'a> {
        self.last.options.grid = Some(workgroups);
        self
    }

    /// Sets the number of invocations of a subgroup [default: the workgroup].
    #[must_use]
    pub fn subgroup_size(mut self, invocations: u32) -> ShaderTest<'a> {
        self.last.options.subgroup_size = Some(invocations);
        self
    }

    /// Sets a specialization constant by its `SpecId`.
    #[must_use]
    pub fn specialization(mut self, id: u32, value: u64) -> ShaderTest<'a> {
        self.last.options.specialization.insert(id, value);
        self
    }

    /// Sets push constants from offset 0.
    #[must_use]
    pub fn push<T: NoUninit>(mut self, constants: &T) -> ShaderTest<'a> {
        self.last.options.push = (0..).zip(bytes_of(constants).iter().copied()).collect();
        self
    }

    /// Binds a slice to a buffer. After the run it has the contents that the shaders left.
    #[must_use]
    pub fn bind<T: Pod>(self, set: u32, binding: u32, data: &'a mut [T]) -> ShaderTest<'a> {
        let memory = BoundMemory::new(data, None);
        self.bind_memory((set, binding), memory, Some(cast_slice_mut(data)))
    }

    /// Binds a copy of a slice to a buffer whose final contents are not needed.
    #[must_use]
    pub fn bind_read<T: NoUninit>(self, set: u32, binding: u32, data: &[T]) -> ShaderTest<'a> {
        self.bind_memory((set, binding), BoundMemory::new(data, None), None)
    }

    /// Binds a slice to a storage image by its format, and its width, height, and depth or layers.
    #[must_use]
    pub fn bind_image<T: Pod>(
        self,
        set: u32,
        binding: u32,
        format: PixelFormat,
        size: [u32; 3],
        data: &'a mut [T],
    ) -> ShaderTest<'a> {
        let memory = BoundMemory::new(data, Some((format, size)));
        self.bind_memory((set, binding), memory, Some(cast_slice_mut(data)))
    }

    /// Binds a copy of a slice to an image whose final contents are not needed, such as a texture.
    #[must_use]
    pub fn bind_texture<T: NoUninit>(
        self,
        set: u32,
        binding: u32,
        format: PixelFormat,
        size: [u32; 3],
        data: &[T],
    ) -> ShaderTest<'a> {
        self.bind_memory((set, binding), BoundMemory::new(data, Some((format, size))), None)
    }

    /// Binds a sampler; for a combined image sampler, next to its texture.
    #[must_use]
    pub fn bind_sampler(mut self, set: u32, binding: u32, sampler: Sampler) -> ShaderTest<'a> {
        self.last.options.samplers.insert((set, binding), sampler);
        self
    }

    /// Binds the memory that earlier dispatches have at another set and binding.
    #[must_use]
    pub fn rebind(mut self, set: u32, binding: u32, earlier: (u32, u32)) -> ShaderTest<'a> {
        self.last.rebound.insert((set, binding), earlier);
        self
    }

    fn bind_memory(
        mut self,
        at: Descriptor,
        memory: BoundMemory,
        slice: Option<&'a mut [u8]>,
    ) -> ShaderTest<'a> {
        self.bindings.push(Binding { dispatch: self.earlier.len(), at, memory, slice });
        self
    }

    /// Adds a dispatch after a barrier. Its descriptors have the memory of earlier ones, except for what it binds.
    ///
    /// Options that are set later are those of the added dispatch.
    #[must_use]
    pub fn then(self, next: ShaderTest<'a>) -> ShaderTest<'a> {
        self.append(next, true)
    }

    /// Adds a dispatch that no barrier orders after the one before it: [`ShaderTestError::Hazard`].
    #[must_use]
    pub fn then_unsynchronized(self, next: ShaderTest<'a>) -> ShaderTest<'a> {
        self.append(next, false)
    }

    fn append(mut self, mut next: ShaderTest<'a>, is_after_barrier: bool) -> ShaderTest<'a> {
        next.earlier.first_mut().unwrap_or(&mut next.last).is_after_barrier = is_after_barrier;
        self.earlier.push(std::mem::replace(&mut self.last, next.last));
        next.bindings.iter_mut().for_each(|binding| binding.dispatch += self.earlier.len());
        self.earlier.append(&mut next.earlier);
        self.bindings.append(&mut next.bindings);
        self
    }

    /// Leaves floats unknown that Vulkan's rules of precision do not fix: [`ShaderTestError::Unknown`].
    #[must_use]
    pub fn exact_floats(mut self) -> ShaderTest<'a> {
        self.last.options.has_exact_floats = true;
        self
    }

    /// Sets the number of schedules, which are all tried [default: a few, more for small grids].
    #[must_use]
    pub fn schedules(mut self, schedules: u64) -> ShaderTest<'a> {
        self.last.options.schedules = Some(schedules);
        self
    }

    /// Runs only one schedule, by the token of a failure. Dispatches without a token run the first one.
    #[must_use]
    pub fn replay(mut self, token: &str) -> ShaderTest<'a> {
        self.last.replay = Some(token.to_owned());
        self
    }

    /// Sets the limit of the steps of all schedules [default: 150,000,000, or more for large grids].
    #[must_use]
    pub fn step_limit(mut self, steps: u64) -> ShaderTest<'a> {
        self.last.options.max_steps = Some(steps);
        self
    }

    /// Sets the seed of the schedules.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> ShaderTest<'a> {
        self.last.options.seed = seed;
        self
    }

    /// Sets the limit of processor time [default: 10 s].
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> ShaderTest<'a> {
        self.time_limit = limit;
        self
    }

    /// Runs each dispatch on a device too, from the same contents, and compares what it leaves.
    ///
    /// Contents that depend on the schedule are not compared.
    #[must_use]
    pub fn on(mut self, device: TestDevice) -> ShaderTest<'a> {
        self.device = Some(device);
        self
    }

    /// Runs the dispatches, and writes the final contents to the bound slices.
    ///
    /// # Errors
    /// If a shader has a finding, the answer is undecided, or a shader or an input is wrong. The slices are
    /// unchanged then.
    pub fn run(self) -> Result<ShaderTestRun, ShaderTestError> {
        let ShaderTest { mut earlier, last, bindings, time_limit, device } = self;
        earlier.push(last);
        let mut dispatches = earlier.into_iter().map(Dispatch::load).collect::<Result<Vec<_>, _>>()?;
        let is_replay = dispatches.iter().any(|dispatch| dispatch.options.replay.is_some());
        for LoadedDispatch { options, .. } in dispatches.iter_mut().filter(|_| is_replay) {
            options.replay.get_or_insert(ScheduleToken { seed: options.seed, schedule: 0 });
        }
        let (mut memory, mut slices) = (Memory::new(), BTreeMap::new());
        // An input that no dispatch has is an error of the one that binds it.
        let mut unused = BTreeSet::new();
        let mut bindings = bindings.into_iter().peekable();
        let model = AxiomaticModel::named("vulkan")?.chosen.model;
        let device = device.map(TestDevice::select).transpose()?;
        let (mut lines, mut order_dependent) = (Vec::new(), None);
        let mut open: Vec<OpenDispatch> = Vec::new();
        for (number, dispatch) in dispatches.iter().enumerate() {
            while let Some(Binding { at, memory: bound, slice, .. }) =
                bindings.next_if(|binding| binding.dispatch == number)
            {
                bound.check_size(at)?;
                let has_memory = |later: &LoadedDispatch| later.descriptor_of(at).is_some();
                if !dispatches[number..].iter().any(has_memory) {
                    unused.insert(at);
                }
                if memory.insert(at, bound).is_some() {
                    return Err(ShaderTestError::BoundTwice(at.0, at.1));
                }
                slices.extend(slice.map(|slice| (at, slice)));
            }
            let mut options = dispatch.options_with(&memory, &unused, time_limit);
            if let Some(device) = &device {
                device.fit(dispatch, &mut options)?;
            }
            let (options, report) = dispatch.walk(options, &model, time_limit)?;
            let mut line = race_line(&dispatch.file, &dispatch.module, &options, report.clone());
            dispatch.check_types(&memory, &line.contents)?;
            match report.verdict {
                RaceVerdict::Racy => {
                    let seed = options.replay.map_or(options.seed, |only| only.seed);
                    let token =
                        report.finding_schedule.map(|schedule| ScheduleToken { seed, schedule }.to_string());
                    let smallest = (!is_replay)
                        .then(|| dispatch.shrink(&memory, &unused, &model, (&options, &report), time_limit));
                    let (line, text, dispatch) = (Box::new(line), dispatch.text.clone(), number + 1);
                    let smallest = smallest.map(Box::new);
                    return Err(ShaderTestError::Finding { line, text, dispatch, token, smallest });
                }
                RaceVerdict::Refused | RaceVerdict::Undecided | RaceVerdict::NeedsInputs => {
                    return Err(ShaderTestError::Undecided(Box::new(line)));
                }
                RaceVerdict::Clean => {}
            }
            if dispatch.is_after_barrier {
                open.clear();
            }
            if !dispatch.is_after_barrier
                || dispatches.get(number + 1).is_some_and(|next| !next.is_after_barrier)
            {
                let (accesses, note) = dispatch.accesses(&options)?;
                line.coverage.limits.extend(note);
                let found = open.iter().find_map(|before| {
                    find_hazard(&before.accesses, &accesses).map(|hazard| (before, hazard))
                });
                if let Some((before, hazard)) = found {
                    let first = &dispatches[before.number];
                    let accesses = [
                        first.access_of(before.number, &before.options, &hazard, hazard.first_writes)?,
                        dispatch.access_of(number, &options, &hazard, hazard.second_writes)?,
                    ];
                    return Err(ShaderTestError::Hazard {
                        first: before.number + 1,
                        second: number + 1,
                        what: hazard.describe(),
                        set: hazard.at.0,
                        binding: hazard.at.1,
                        byte: hazard.byte,
                        accesses: accesses.into_iter().flatten().collect(),
                    });
                }
                open.push(OpenDispatch { number, options: options.clone(), accesses });
            }
            if let Some(device) = device.as_ref().filter(|_| report.order_dependent_element.is_none()) {
                device.compare(dispatch, &options, &report, &memory)?;
            }
            let is_last = number + 1 == dispatches.len();
            dispatch.update(&mut memory, &report, |at| !is_last || slices.contains_key(&at))?;
            order_dependent = order_dependent.or(report.order_dependent_element);
            lines.push(line);
        }
        for (at, slice) in slices {
            if let Some(BoundMemory { bytes, .. }) = memory.get(&at) {
                slice.copy_from_slice(bytes);
            }
        }
        let line = lines.pop().ok_or_else(|| ShaderTestError::Input("no dispatch".to_owned()))?;
        Ok(ShaderTestRun { line, earlier: lines, order_dependent })
    }
}

impl Dispatch {
    fn load(self) -> Result<LoadedDispatch, ShaderTestError> {
        let Dispatch { shader, text, mut options, replay, rebound, is_after_barrier } = self;
        let ShaderModule { file, source, .. } = shader?;
        if let Some(size) = options.subgroup_size.filter(|size| !size.is_power_of_two() || *size > 128) {
            let expected = "expected a power of two up to 128";
            return Err(ShaderTestError::Input(format!("{file}: subgroup_size: {size}; {expected}")));
        }
        if let Some(token) = replay {
            let token = token.parse::<ScheduleToken>();
            let input_error = |error| ShaderTestError::Input(format!("{file}: replay: {error}"));
            options.replay = Some(token.map_err(input_error)?);
        }
        options.language = source.language;
        options.by_language_rules = source.language.is_some();
        options.keep_final = true;
        options.needs_whole_push = true;
        options.needs_all_inputs = true;
        let module = entry_point::inputs::read_bound_module(&source.bytes, &options);
        let module = module.map_err(|refusal| input_error(&file, &refusal))?;
        let loaded = LoadedDispatch { file, text, module, options, rebound, is_after_barrier };
        match loaded.rebound.values().find(|from| loaded.descriptor_of(**from) == Some(**from)) {
            // One of them would be a copy.
            Some((set, binding)) => Err(ShaderTestError::BoundTwice(*set, *binding)),
            None => Ok(loaded),
        }
    }
}

fn input_error(file: &str, refusal: &Refusal) -> ShaderTestError {
    ShaderTestError::Input(placed_refusal_text(file, refusal))
}

impl LoadedDispatch {
    /// Returns the descriptor that has the memory of `at`, if the module has one.
    fn descriptor_of(&self, at: Descriptor) -> Option<Descriptor> {
        let declared = self.module.descriptors();
        let own = declared.contains(&at) && !self.rebound.contains_key(&at);
        let rebound = self.rebound.iter().find(|(own, from)| **from == at && declared.contains(own));
        own.then_some(at).or(rebound.map(|(own, _)| *own))
    }

    /// Returns the options with the contents of `memory`, and a deadline.
    fn options_with(
        &self,
        memory: &Memory,
        unused: &BTreeSet<Descriptor>,
        limit: Duration,
    ) -> AnalysisOptions {
        let mut options = self.options.clone();
        options.deadline = Some(DeadlinePredicate::new(stop_after(limit)));
        for (at, BoundMemory { bytes, image, .. }) in memory {
            let at = unused.get(at).copied().or_else(|| self.descriptor_of(*at));
            let Some(at) = at else { continue };
            match image.and_then(|(format, size)| Some((format.texels()?, size))) {
                None => _ = options.buffers.insert(at, bytes.clone().into()),
                Some((format, size)) => {
                    let texels = TexelInput::Bytes(unpack_texels(format, bytes));
                    let format = image.map(|(format, _)| format as u32);
                    options.images.insert(at, ImageInput { size, levels: 1, texels, format });
                }
            }
        }
        options
    }

    /// Compares the numbers of slices with those of the buffers. Bytes and structures are any.
    fn check_types(&self, memory: &Memory, contents: &[BufferContents]) -> Result<(), ShaderTestError> {
        for (at, bound) in memory.iter().filter(|(_, bound)| bound.image.is_none()) {
            let Some((set, binding)) = self.descriptor_of(*at) else { continue };
            let own = contents.iter().find(|own| (own.set, own.binding) == (set, binding));
            let (Some(expected), Some(given)) =
                (own.and_then(|own| own.scalar.as_deref()), bound.number_type())
            else {
                continue;
            };
            let is_given = |one: &str| one.replace('i', "u") == given.replace('i', "u");
            if !expected.split(' ').any(is_given) {
                return Err(ShaderTestError::Input(format!(
                    "{}: set {set}, binding {binding}: elements of {given}; expected {expected}, as in the shader",
                    self.file
                )));
            }
        }
        Ok(())
    }

    fn walk(
        &self,
        options: AnalysisOptions,
        model: &Model,
        limit: Duration,
    ) -> Result<(AnalysisOptions, GridReport), ShaderTestError> {
        let refused = |refusal: Refusal| input_error(&self.file, &refusal);
        let EntryOptions { mut entries, .. } = entry_options(&self.module, &options).map_err(refused)?;
        let (Some(options), true) = (entries.pop(), entries.is_empty()) else {
            let names = self.module.entry_points().join(", ");
            return Err(ShaderTestError::Input(format!(
                "{}: expected the name of an entry point: {names}",
                self.file
            )));
        };
        let stop = stop_after(limit);
        let report =
            analysis::decide(&self.module, &options, model, Budget::until(&stop)).map_err(refused)?;
        Ok((options, report))
    }

    /// Returns the first access of a hazard in this dispatch, with the given options.
    fn access_of(
        &self,
        number: usize,
        options: &AnalysisOptions,
        hazard: &Hazard,
        writes: bool,
    ) -> Result<Option<DispatchAccess>, ShaderTestError> {
        let Some(at) = self.descriptor_of(hazard.at) else { return Ok(None) };
        let spots = accesses_of_byte(&self.module, options, at, hazard.byte, ACCESS_STEPS);
        let spots = spots.map_err(|refusal| input_error(&self.file, &refusal))?;
        let spot = spots.iter().find(|spot| spot.writes == Some(writes));
        Ok(spot.map(|spot| {
            let place = finding_place(&self.file, &self.module, spot);
            let line = place.line.and_then(|line| self.text.as_deref()?.lines().nth(line as usize - 1));
            DispatchAccess { dispatch: number + 1, snippet: line.map(str::to_owned), place }
        }))
    }

    /// Returns the accesses by memory, and a note if another walk may have others.
    fn accesses(
        &self,
        options: &AnalysisOptions,
    ) -> Result<(BTreeMap<Descriptor, ResourceAccess>, Option<CoverageLimit>), ShaderTestError> {
        let all = accessed_bytes(&self.module, options, ACCESS_STEPS);
        let mut all = all.map_err(|refusal| input_error(&self.file, &refusal))?;
        if !all.is_complete {
            let text = format!("{}: the accesses are not known; expected a shorter dispatch", self.file);
            return Err(ShaderTestError::Input(text));
        }
        let note =
            "hazards between dispatches are those of one walk: contents or the schedule decide accesses";
        let note = (!all.is_fixed()).then(|| CoverageLimit::Note { text: note.to_owned() });
        let bindings = std::mem::take(&mut all.bindings).into_iter().map(|((set, binding, _), access)| {
            let at = (set, binding);
            (self.rebound.get(&at).copied().unwrap_or(at), access)
        });
        Ok((bindings.collect(), note))
    }

    /// Updates `memory` with the final contents; those that `needs` names must be known.
    fn update(
        &self,
        memory: &mut Memory,
        report: &GridReport,
        needs: impl Fn(Descriptor) -> bool,
    ) -> Result<(), ShaderTestError> {
        for (first, bound) in memory {
            let Some(at) = self.descriptor_of(*first) else { continue };
            let mut finals = report.final_buffers.iter();
            let buffer = finals.find(|buffer| buffer.at == (at.0, at.1, 0));
            // Without contents of any buffer, the first schedule did not end.
            let unknown = match buffer {
                Some(buffer) => buffer.first_unknown_byte,
                None => report.final_buffers.is_empty().then_some(0),
            };
            if let Some(byte) = unknown.filter(|_| needs(*first)) {
                return Err(ShaderTestError::Unknown { set: at.0, binding: at.1, byte });
            }
            if let Some(buffer) = buffer {
                let length = bound.bytes.len().min(buffer.bytes.len());
                bound.bytes[..length].copy_from_slice(&buffer.bytes[..length]);
            }
        }
        Ok(())
    }
}
