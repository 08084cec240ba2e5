//! Writes the kernels of litmus tests, with fixed parameters, as SPIR-V files: `kernels OUT TEST…`.
use shaders::{Binding, KernelConfig, Parameters, Pipelines};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let out = args.next().ok_or("out")?;
    let lanes: u32 = std::env::var("LANES").ok().and_then(|l| l.parse().ok()).unwrap_or(64);
    for file in args {
        let text = std::fs::read_to_string(&file)?;
        let name = std::path::Path::new(&file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let test = match litmus::parse(&text, &name) {
            Ok(test) => litmus::convert::guarded(&test),
            Err(error) => {
                eprintln!("{file}: {error}");
                continue;
            }
        };
        let config = KernelConfig {
            subgroup_size: 64,
            lanes,
            max_workgroup_invocations: 1024,
            device_scope: true,
            loop_bound: 1,
            stressed: false,
            variant: std::env::var("VARIANT").unwrap_or_default().parse()?,
        };
        for (form, pipelines) in [("merged", Pipelines::Merged), ("split", Pipelines::Split)] {
            let program = match shaders::fixed_program(&test, &config, pipelines, &Parameters::SINGLE) {
                Ok(program) => program,
                Err(error) => {
                    eprintln!("{name} {form}: {error}");
                    continue;
                }
            };
            for (number, kernel) in program.kernels().enumerate() {
                let path = format!("{out}/{name}@{form}.{number}.spv");
                let bytes: Vec<u8> = kernel.words.iter().flat_map(|w| w.to_le_bytes()).collect();
                std::fs::write(&path, bytes)?;
                let mut kinds: String = kernel.bindings.iter().map(|_: &Binding| 'b').collect();
                for image in &kernel.images {
                    kinds.push(if image.shape == shaders::variant::Images::TexelBuffer { 't' } else { 'i' });
                }
                println!(
                    "{path} {out}/{name}@{form}.{number}.s {kinds} {} {}",
                    if kernel.addresses { 72 } else { 64 },
                    64
                );
            }
        }
    }
    Ok(())
}
