//! Tests of LLVM's offload test suite (`docs` and `include/Support/Pipeline.h` there): an HLSL source and a pipeline in
//! YAML, as parts of one file in the form of `split-file`.
//!
//! A test has one compute shader. The flags that its `RUN` line gives to dxc are those of the shader. Expected buffers are
//! claims about final contents; the other checks of a `RUN` line are not read. Comparisons of floats are those of
//! `lib/Support/Check.cpp` there, but values of both signs near zero are never equal by a number of ULPs.

use std::collections::BTreeMap;

use entry_point::AnalysisOptions;

use super::values::{FloatTolerance, compare_float};
use super::yaml::{YamlFields, YamlNode};
use super::{
    DataType, DxcFlags, MAX_BUFFER_BYTES, Scalar, Script, ScriptBinding, ScriptBuffer, ScriptError,
    ScriptProblem, ScriptResource, ScriptRun, ShaderFormat, ShaderText,
};

/// A format of values: how the test writes them, and their type in the shader.
#[derive(Clone, Copy)]
struct ValueFormat {
    written: Scalar,
    scalar: Scalar,
}

impl ValueFormat {
    /// Returns a format of `DataFormat`. Floats of 16 bits are written as their bits.
    fn from_name(name: &str) -> Option<ValueFormat> {
        let digits = name.find(|letter: char| letter.is_ascii_digit()).unwrap_or(name.len());
        let (kind, bits) = name.split_at(digits);
        let bits = if kind == "Bool" { 32 } else { bits.parse().ok()? };
        let scalar = match (kind, bits) {
            ("Hex", 8) | ("Hex" | "UInt", 16 | 32 | 64) | ("Bool", _) => Scalar::Unsigned(bits),
            ("Int", 16 | 32 | 64) => Scalar::Signed(bits),
            ("Float", 16 | 32 | 64) | ("Depth", 32) => Scalar::Float(bits),
            _ => return None,
        };
        let written = if scalar == Scalar::Float(16) { Scalar::Unsigned(16) } else { scalar };
        Some(ValueFormat { written, scalar })
    }
}

/// The version of HLSL without a flag, which older dxc have to be given.
const DEFAULT_VERSION: &str = "2021";

/// Flags of dxc that a test may give; others could name files.
const DXC_FLAGS: [&str; 7] = [
    "-enable-16bit-types",
    "-fspv-enable-maximal-reconvergence",
    "-fspv-use-legacy-buffer-matrix-order",
    "-fvk-use-dx-layout",
    "-fvk-use-scalar-layout",
    "-Gis",
    "-Zpr",
];

/// A buffer with what its uses as an image need.
struct TestBuffer {
    buffer: ScriptBuffer,
    channels: u32,
    /// Width, height and depth, and mip levels.
    size: Option<([u32; 3], u32)>,
}

/// Returns true if a text has the parts of a test.
pub fn is_offload_test(text: &str) -> bool {
    text.lines().filter_map(part_name).any(is_pipeline_name)
}

/// Returns the name of the part that starts with a line such as `#--- source.hlsl`.
fn part_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("//").or_else(|| line.strip_prefix('#'))?;
    rest.strip_prefix("--- ").map(str::trim)
}

/// Returns true for a part with a pipeline; `rules.yaml` has rules to compare pictures.
fn is_pipeline_name(name: &str) -> bool {
    name.ends_with(".yaml") && name != "rules.yaml"
}

/// Parses a test.
///
/// # Errors
/// If the test is malformed or not supported.
pub fn parse(text: &str) -> Result<Script, ScriptError> {
    let hlsl = only_part(text, "part NAME.hlsl", |name| name.ends_with(".hlsl"))?;
    let pipeline = YamlNode::parse(&only_part(text, "part NAME.yaml", is_pipeline_name)?)?;
    let shader = ShaderText { format: ShaderFormat::Hlsl, text: hlsl };
    let mut run = ScriptRun::new(shader, AnalysisOptions::default(), 1, 1);
    run.dxc_flags = dxc_flags(text)?;
    let (mut fields, buffers) = read_pipeline(&pipeline, &mut run)?;
    let contents = |(name, test): (&String, &TestBuffer)| (name.clone(), test.buffer.clone());
    let mut script =
        Script { runs: vec![run], buffers: buffers.iter().map(contents).collect(), ..Script::default() };
    for result in fields.take("Results").map_or(Ok(&[][..]), YamlNode::items)? {
        expect_result(result, &mut script)?;
    }
    fields.finish().map(|()| script)
}

/// Returns the only part of a kind, at its lines of the test.
fn only_part(
    text: &str,
    what: &'static str,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<String, ScriptError> {
    let (mut part, mut is_inside, mut starts) = (String::new(), false, 0);
    for (line, number) in text.lines().zip(1..) {
        match part_name(line) {
            Some(name) => {
                is_inside = is_wanted(name);
                starts += u32::from(is_inside);
                if starts == 2 {
                    let problem = ScriptProblem::Repeated(what);
                    return Err(ScriptError { line: number, column: 1, problem });
                }
                part.push('\n');
            }
            None => {
                part.push_str(if is_inside { line } else { "" });
                part.push('\n');
            }
        }
    }
    let missing = ScriptError { line: 1, column: 1, problem: ScriptProblem::Missing(what) };
    (starts == 1).then_some(part).ok_or(missing)
}

/// Returns the flags that the first `RUN` line with dxc gives to it.
fn dxc_flags(text: &str) -> Result<DxcFlags, ScriptError> {
    let mut flags = DxcFlags::default();
    let mut version = DEFAULT_VERSION;
    let is_plain = |word: &&str| word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    // A command that has to fail has no expected contents.
    let is_negated = |line: &str| line.contains("RUN:") && line.split_whitespace().any(|word| word == "not");
    if let Some((_, line)) = text.lines().zip(1..).find(|(line, _)| is_negated(line)) {
        let problem = ScriptProblem::Unsupported("RUN: not".to_owned());
        return Err(ScriptError { line, column: 1, problem });
    }
    let is_run = |line: &str| line.contains("RUN:") && line.contains("%dxc_target ");
    let Some((line, number)) = text.lines().zip(1..).find(|(line, _)| is_run(line)) else {
        return Ok(flags);
    };
    let mut words = line.split_whitespace().skip_while(|word| *word != "%dxc_target").skip(1);
    while let Some(word) = words.next() {
        match word {
            "-T" => flags.profile = words.next().filter(is_plain).map(str::to_owned),
            "-HV" => version = words.next().filter(is_plain).unwrap_or(version),
            // The entry point is that of the pipeline; `%if` names a target.
            "-E" | "-Fo" | "%if" => drop(words.next()),
            "%{" | "%}" => {}
            "|" | "2>&1" => break,
            _ if word.starts_with("%t") => {}
            _ if DXC_FLAGS.contains(&word) => flags.others.push(word.to_owned()),
            _ => {
                let problem = ScriptProblem::Unsupported(word.to_owned());
                return Err(ScriptError { line: number, column: 1, problem });
            }
        }
    }
    flags.others.push(format!("-HV {version}"));
    Ok(flags)
}

/// Reads everything but the results, and returns the buffers.
fn read_pipeline<'y>(
    pipeline: &'y YamlNode,
    run: &mut ScriptRun,
) -> Result<(YamlFields<'y>, BTreeMap<String, TestBuffer>), ScriptError> {
    let mut fields = pipeline.fields()?;
    read_shader(fields.require("Shaders")?, run)?;
    let mut buffers = BTreeMap::new();
    for node in fields.require("Buffers")?.items()? {
        let (name, buffer) = read_buffer(node)?;
        if buffers.insert(name, buffer).is_some() {
            return Err(node.error(ScriptProblem::Repeated("buffer of this name")));
        }
    }
    for (set, node) in (0..).zip(fields.require("DescriptorSets")?.items()?) {
        let mut descriptors = node.fields()?;
        for resource in descriptors.require("Resources")?.items()? {
            bind_resource(set, resource, &buffers, run)?;
        }
        descriptors.finish()?;
    }
    for block in fields.take("PushConstants").map_or(Ok(&[][..]), YamlNode::items)? {
        let mut block = block.fields()?;
        require_compute(block.require("Stage")?)?;
        for value in block.require("Values")?.items()? {
            let mut value = value.fields()?;
            let format = read_format(value.require("Format")?)?;
            let offset: u32 = value.require("Offset")?.number()?;
            let mut bytes = Vec::new();
            write_values(&mut bytes, format, value.require("Data")?)?;
            value.finish()?;
            run.options.push.extend((u64::from(offset)..).zip(bytes));
        }
        block.finish()?;
    }
    if let Some(node) = fields.take("DispatchParameters") {
        let mut dispatch = node.fields()?;
        read_grid(dispatch.take("DispatchGroupCount"), run)?;
        dispatch.finish()?;
    }
    run.options.grid.get_or_insert([1; 3]);
    Ok((fields, buffers))
}

fn read_shader(shaders: &YamlNode, run: &mut ScriptRun) -> Result<(), ScriptError> {
    let [shader, others @ ..] = shaders.items()? else {
        return Err(shaders.error(ScriptProblem::Missing("compute shader")));
    };
    let mut shader = shader.fields()?;
    require_compute(shader.require("Stage")?)?;
    run.options.entry = Some(shader.require("Entry")?.text()?.to_owned());
    for constant in shader.take("SpecializationConstants").map_or(Ok(&[][..]), YamlNode::items)? {
        let mut constant = constant.fields()?;
        let id = constant.require("ConstantID")?.number()?;
        let format = read_format(constant.require("Type")?)?;
        let value = constant.require("Value")?;
        let bits = parse_value(format, value)?;
        if run.options.specialization.insert(id, bits).is_some() {
            return Err(value.error(ScriptProblem::Repeated("constant of this number")));
        }
        constant.finish()?;
    }
    // Older tests have the grid here.
    read_grid(shader.take("DispatchSize"), run)?;
    shader.finish()?;
    match others.first() {
        Some(second) => Err(second.error(ScriptProblem::Repeated("shader"))),
        None => Ok(()),
    }
}

fn read_grid(counts: Option<&YamlNode>, run: &mut ScriptRun) -> Result<(), ScriptError> {
    let Some(counts) = counts else { return Ok(()) };
    let mut grid = [1; 3];
    for (size, count) in grid.iter_mut().zip(counts.items()?) {
        *size = count.number()?;
    }
    run.options.grid = Some(grid);
    Ok(())
}

fn require_compute(stage: &YamlNode) -> Result<(), ScriptError> {
    match stage.text()? {
        "Compute" => Ok(()),
        other => Err(stage.error(ScriptProblem::Unsupported(format!("Stage: {other}")))),
    }
}

fn read_format(node: &YamlNode) -> Result<ValueFormat, ScriptError> {
    let name = node.text()?;
    let unsupported = || node.error(ScriptProblem::Unsupported(format!("Format: {name}")));
    ValueFormat::from_name(name).ok_or_else(unsupported)
}

/// Returns the bits of a value.
fn parse_value(format: ValueFormat, node: &YamlNode) -> Result<u64, ScriptError> {
    format.written.parse(node.text()?).map_err(|problem| node.error(problem))
}

/// Appends the values of a list.
fn write_values(bytes: &mut Vec<u8>, format: ValueFormat, list: &YamlNode) -> Result<(), ScriptError> {
    let size = format.scalar.bytes() as usize;
    for item in list.items()? {
        bytes.extend(parse_value(format, item)?.to_le_bytes().iter().take(size));
    }
    Ok(())
}

fn read_buffer(node: &YamlNode) -> Result<(String, TestBuffer), ScriptError> {
    let mut fields = node.fields()?;
    let name = fields.require("Name")?.text()?.to_owned();
    let format = read_format(fields.require("Format")?)?;
    let channels = fields.take("Channels").map_or(Ok(1), YamlNode::number)?;
    let stride = fields.take("Stride");
    if let Some(count) = fields.take("ArraySize")
        && count.number::<u32>()? != 1
    {
        return Err(count.error(ScriptProblem::Unsupported(format!("ArraySize: {}", count.text()?))));
    }
    let mut bytes = Vec::new();
    let fill = fields.take("FillValue").map(|value| parse_value(format, value)).transpose()?;
    match fields.take("FillSize") {
        Some(node) => {
            let size: u64 = node.number()?;
            if size > MAX_BUFFER_BYTES {
                return Err(node.error(ScriptProblem::TooMany(MAX_BUFFER_BYTES, "bytes of a buffer")));
            }
            let pattern = fill.unwrap_or(0).to_le_bytes();
            let pattern = pattern.iter().take(format.scalar.bytes() as usize);
            bytes.extend(pattern.cycle().take(size as usize));
        }
        None => write_values(&mut bytes, format, fields.require("Data")?)?,
    }
    if let Some(node) = stride {
        let (stride, bytes) = (node.number::<u64>()?, bytes.len() as u64);
        if stride == 0 || bytes % stride != 0 {
            return Err(node.error(ScriptProblem::Stride { bytes, stride }));
        }
    }
    let size = fields.take("OutputProps").map(read_size).transpose()?;
    fields.finish()?;
    let buffer = ScriptBuffer::new(DataType::scalar(format.scalar), bytes);
    Ok((name, TestBuffer { buffer, channels, size }))
}

fn read_size(node: &YamlNode) -> Result<([u32; 3], u32), ScriptError> {
    let mut fields = node.fields()?;
    let mut size = [0; 3];
    for (axis, key) in size.iter_mut().zip(["Width", "Height", "Depth"]) {
        *axis = fields.require(key)?.number()?;
    }
    let levels = fields.take("MipLevels").map_or(Ok(1), YamlNode::number)?;
    fields.finish().map(|()| (size, levels))
}

/// Binds a buffer, or an image with the contents of a buffer.
fn bind_resource(
    set: u32,
    node: &YamlNode,
    buffers: &BTreeMap<String, TestBuffer>,
    run: &mut ScriptRun,
) -> Result<(), ScriptError> {
    let mut fields = node.fields()?;
    let kind_node = fields.require("Kind")?;
    let kind = kind_node.text()?;
    let (is_image, is_written) = match kind {
        "StructuredBuffer" | "ByteAddressBuffer" | "ConstantBuffer" => (false, false),
        "RWStructuredBuffer" | "RWByteAddressBuffer" => (false, true),
        "Buffer" | "Texture2D" => (true, false),
        "RWBuffer" | "RWTexture2D" => (true, true),
        _ => return Err(kind_node.error(ScriptProblem::Unsupported(format!("Kind: {kind}")))),
    };
    let name = fields.require("Name")?;
    let unknown = || name.error(ScriptProblem::Unknown("buffer", name.text().unwrap_or_default().to_owned()));
    let buffer = buffers.get(name.text()?).ok_or_else(unknown)?;
    fields.take("DirectXBinding");
    fields.take("HasCounter");
    let mut places = fields.require("VulkanBinding")?.fields()?;
    let binding = places.require("Binding")?;
    let place = (set, binding.number()?);
    let (line, column) = binding.place();
    run.resources.push(ScriptResource {
        binding: place,
        is_image,
        kind: format!("Kind: {kind}"),
        line,
        column,
    });
    if let Some(counter) = places.take("CounterBinding") {
        run.options.buffers.insert((set, counter.number()?), vec![0; 4].into());
    }
    places.finish()?;
    fields.finish()?;
    if is_image {
        let size = buffer.size.filter(|_| !kind.ends_with("Buffer"));
        let added = run.add_image(place, &buffer.buffer, buffer.channels, size);
        added.map_err(|problem| name.error(problem))?;
    }
    let buffer = name.text()?.to_owned();
    run.bindings.push(ScriptBinding { at: place, buffer, is_written, is_image });
    Ok(())
}

/// Adds the claims of an expected result.
fn expect_result(node: &YamlNode, script: &mut Script) -> Result<(), ScriptError> {
    let mut fields = node.fields()?;
    fields.take("Result");
    let rule_node = fields.require("Rule")?;
    let tolerance = match rule_node.text()? {
        "BufferExact" => None,
        "BufferFloatULP" => Some(FloatTolerance::Ulps(
            fields.require("ULPT")?.number()?,
            decimal(fields.take("ZeroTolerance"))?,
        )),
        "BufferFloatEpsilon" => Some(FloatTolerance::Epsilon(decimal(Some(fields.require("Epsilon")?))?)),
        other => return Err(rule_node.error(ScriptProblem::Unsupported(format!("Rule: {other}")))),
    };
    let may_flush = fields.take("DenormMode").map_or(Ok("Any"), YamlNode::text)? == "Any";
    let (name, actual) = find_buffer(&mut fields, "Actual", script)?;
    let (_, expected) = find_buffer(&mut fields, "Expected", script)?;
    fields.finish()?;
    let [size, other] = [&actual, &expected].map(|buffer| buffer.bytes.len() as u64);
    if size != other {
        return Err(node.error(ScriptProblem::Sizes(size, other)));
    }
    let scalar = actual.ty.scalar;
    let bytes = scalar.bytes();
    for (index, value) in (0..).zip(expected.bytes.chunks_exact(bytes as usize)) {
        let bits = value.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        let term = script.term_at(name, index * u64::from(bytes), bytes);
        let claim = term.and_then(|term| compare_float(scalar, &term, bits, tolerance, may_flush));
        claim
            .and_then(|claim| script.expect(node.place().0, &[name], claim))
            .map_err(|problem| node.error(problem))?;
    }
    Ok(())
}

/// Returns a number with a fraction; zero for a missing one.
fn decimal(node: Option<&YamlNode>) -> Result<f64, ScriptError> {
    let Some(node) = node else { return Ok(0.0) };
    let text = node.text()?;
    let invalid = || node.error(ScriptProblem::Value(text.to_owned(), "a number"));
    text.parse().map_err(|_| invalid())
}

fn find_buffer<'y>(
    fields: &mut YamlFields<'y>,
    key: &'static str,
    script: &Script,
) -> Result<(&'y str, ScriptBuffer), ScriptError> {
    let node = fields.require(key)?;
    let name = node.text()?;
    let buffer = script.buffer(name).map_err(|problem| node.error(problem))?;
    Ok((name, buffer.clone()))
}
