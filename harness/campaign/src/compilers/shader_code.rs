//! `codegen` of shaders: the machine code of each entry point next to its source, and the orders that it keeps.

use analysis::{InputGrid, InputMode, placed_refusal_text};
use codegen::order::{RequiredOrder, check_order, orders_of_steps, unordered_neighbours};
use codegen::{Disassembly, LineSource, MemoryRole, align_module};
use entry_point::{AnalysisOptions, Problem, Refusal};
use results::wire::{
    CODEGEN_SCHEMA, CodegenKernel, CodegenLine, CodegenOrder, CodegenOrderVerdict, CodegenOrdered,
    CodegenVerdict,
};
use spirv_reader::SpirvModule;

use super::code_lines::{described_kernel, named_code};
use super::engine::{CompilerEngine, KernelResult};
use super::orders::order_record;
use super::shader_steps::{ShaderSteps, SourceLines, collect_steps};
use super::targets::CompilerTarget;
use crate::Failure;
use crate::compile_worker::{CompilationResult, KernelToCompile};
use crate::files::{MAX_SHADER_BYTES, read_text};
use crate::kinds::shader::AnalyzedShader;
use crate::shader::prepare_run::{device_shader, make_ids_unique};
use crate::shader::shader_analysis::read_entry_points;
use crate::shader::source::{Compilation, load_all, shader_stem};

/// The name of the form of a shader's kernels in records.
const FORM: &str = "shader";

/// An entry point of a shader, to compile.
#[derive(Clone)]
pub struct ShaderKernel {
    shader: AnalyzedShader,
    steps: ShaderSteps,
}

/// Returns the entry points of a file's modules, or the one in the options. A feature that no device can be given
/// is recorded in the entry point.
///
/// # Errors
/// If the file is invalid.
pub fn load_shader_kernels(
    file: &str,
    compilation: &Compilation,
    options: &AnalysisOptions,
) -> Result<Vec<ShaderKernel>, Failure> {
    let to_failure = |refusal: Refusal| Failure::input_message(placed_refusal_text(file, &refusal));
    let lines =
        read_text(file.as_ref(), MAX_SHADER_BYTES).unwrap_or_default().lines().map(str::to_owned).collect();
    let source = SourceLines { file, lines };
    let mut kernels = Vec::new();
    // Layouts need the sizes of push constants and buffers, not their contents.
    let compilation = &Compilation { ignores_contents: true, ..compilation.clone() };
    for shader in load_all(file, compilation) {
        let shader = shader.map_err(|error| error.to_failure())?;
        let (module, entries) = read_entry_points(file, &shader, options).map_err(to_failure)?;
        for given in entries {
            let entry = given.entry.clone().unwrap_or_default();
            let id = format!("{}:{entry}", shader_stem(file));
            let mut analyzed = AnalyzedShader::new(id, file.to_owned(), entry);
            let prepared = analysis::choose_inputs(&module, &given, InputMode::Zeros, InputGrid::Whole)
                .and_then(|chosen| analysis::dispatch::plan_dispatch(&module, &chosen.primary(&given)))
                .and_then(|dispatch| Ok((dispatch, entry_steps(&module, &given, &source)?)));
            let steps = match prepared {
                Ok((dispatch, steps)) => {
                    device_shader(&mut analyzed, dispatch);
                    steps
                }
                // An unsupported feature is not an error of the shader.
                Err(Refusal { what: what @ (Problem::Unsupported(_) | Problem::EntryPoint(_)), .. }) => {
                    analyzed.unavailable_reason = Some(format!("not available: {what}"));
                    ShaderSteps::default()
                }
                Err(refusal) => return Err(to_failure(refusal)),
            };
            kernels.push(ShaderKernel { shader: analyzed, steps });
        }
    }
    Ok(kernels)
}

/// Gives kernels of equal names those of their files as well.
pub fn name_kernels_uniquely(kernels: &mut [ShaderKernel]) {
    make_ids_unique(kernels.iter_mut().map(|kernel| &mut kernel.shader));
}

fn entry_steps(
    module: &SpirvModule,
    options: &AnalysisOptions,
    source: &SourceLines<'_>,
) -> Result<ShaderSteps, Refusal> {
    let entry = module.find_entry(options.entry.as_deref())?;
    let steps = collect_steps(module, entry.function, source);
    steps.map_err(|problem| problem.located_at(spirv_reader::SourcePosition::Module))
}

/// Compiles shaders on a device and returns their lines, with code, intermediate representations if `shows_forms`,
/// and orders.
pub fn compile_shader_lines(
    engine: &CompilerEngine,
    target: &CompilerTarget,
    kernels: &[ShaderKernel],
    shows_forms: bool,
) -> Vec<CodegenLine> {
    let (listed, driver) = (&target.listed, target.driver());
    let missing: Vec<Option<String>> = (kernels.iter())
        .map(|one| one.shader.missing_requirement(&listed.identity, &listed.capabilities))
        .collect();
    let compiled: Vec<KernelToCompile> = (kernels.iter().zip(&missing))
        .filter(|(_, missing)| missing.is_none())
        .map(|(one, _)| KernelToCompile::from(&one.shader.shader))
        .collect();
    let mut results = engine.compile_kernels(target, &compiled).into_iter();
    let to_line = |(one, missing): (&ShaderKernel, Option<String>)| {
        let mut line = CodegenLine {
            schema: CODEGEN_SCHEMA.to_owned(),
            id: one.shader.id.clone(),
            name: one.shader.file.clone(),
            device: target.name.clone(),
            driver: driver.clone(),
            verdict: CodegenVerdict::Skipped,
            reason: missing,
            replay: format!(
                "vk-litmus codegen '{}' --entry '{}' --device '{}'{}",
                one.shader.file,
                one.shader.shader.entry,
                target.name,
                target.mesa_argument()
            ),
            ..CodegenLine::default()
        };
        if line.reason.is_some() {
            return line;
        }
        let blank = blank_kernel(one);
        match results.next() {
            Some(KernelResult::Compiled(compiled)) => {
                line.verdict = CodegenVerdict::Compiles;
                line.kernels.push(kernel_record(one, blank, &compiled, target, shows_forms));
            }
            Some(KernelResult::MissingFeature(what)) => line.reason = Some(what),
            Some(KernelResult::Crashed(how)) => {
                line.verdict = CodegenVerdict::Crashes;
                line.reason = Some(how.clone());
                let verdict = CodegenVerdict::Crashes;
                line.kernels.push(CodegenKernel { verdict, reason: Some(how), ..blank });
            }
            None => line.reason = Some("no answer for the kernel".to_owned()),
        }
        line
    };
    kernels.iter().zip(missing).map(to_line).collect()
}

fn blank_kernel(one: &ShaderKernel) -> CodegenKernel {
    let role = MemoryRole::from_accesses(one.steps.steps.iter().filter_map(|step| step.kind.directions()));
    CodegenKernel {
        form: FORM.to_owned(),
        kernel: one.shader.shader.entry.clone(),
        role: role.name().to_owned(),
        ..CodegenKernel::default()
    }
}

fn kernel_record(
    one: &ShaderKernel,
    blank: CodegenKernel,
    compiled: &CompilationResult,
    target: &CompilerTarget,
    shows_forms: bool,
) -> CodegenKernel {
    let machine = Disassembly::parse(compiled.assembly(), target.dialect());
    let (mut code, mut orders) = (Vec::new(), Vec::new());
    if let Ok(machine) = &machine {
        let name = |source: LineSource| match source {
            LineSource::Instruction(_, index) => one.steps.names.get(index).cloned().unwrap_or_default(),
            LineSource::Result(_) => String::new(),
        };
        let alignment = align_module(one.steps.accesses.clone(), machine);
        code = named_code(machine, &alignment, &name);
        let check =
            |required: &RequiredOrder| check_order(required, machine, &alignment, target.compiler_target());
        let size = one.shader.local_size.iter().product();
        let subgroup_size = match compiled.subgroup_size {
            0 => target.listed.capabilities.subgroup_size_range.1,
            size => size,
        };
        let required: Vec<RequiredOrder> = (orders_of_steps(&one.steps.steps).into_iter())
            .map(|required| required.in_workgroup(size, subgroup_size))
            .collect();
        let stronger = unordered_neighbours(&one.steps.steps, &required).into_iter().filter_map(|pair| {
            let found = check(&pair);
            let is_ordered = found.verdict == CodegenOrderVerdict::Kept && found.source.is_some();
            let found = CodegenOrdered { verdict: CodegenOrderVerdict::Stronger, ..found };
            is_ordered.then(|| order_record(&pair, found, &name))
        });
        let kept = required.iter().map(|required| order_record(required, check(required), &name));
        orders = kept.chain(stronger).collect::<Vec<CodegenOrder>>();
    }
    CodegenKernel { code, orders, ..described_kernel(blank, compiled, &machine, shows_forms) }
}
