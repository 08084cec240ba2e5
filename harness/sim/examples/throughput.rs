//! Prints the number of instances of a test that the simulated GPU runs per second on one core: `throughput
//! [SECONDS] FILE…`.

use std::ops::ControlFlow;
use std::time::Duration;

use plan::Device;
use runner::{RunBudget, RunSettings, Stress};
use sim::{Fault, SimDevice};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let seconds: f64 = arguments.first().and_then(|first| first.parse().ok()).unwrap_or(1.0);
    arguments.retain(|argument| argument.parse::<f64>().is_err());
    let fault = match std::env::var("FAULT") {
        Ok(name) => name.parse()?,
        Err(_) => Fault::None,
    };
    let device = SimDevice::new(fault);
    let stress = Stress::for_device(device.identity(), device.capabilities())?;
    for file in arguments {
        let test = litmus::parse(&std::fs::read_to_string(&file)?, &file)?;
        let kernel = match shaders::compile(&test, &stress.kernel_config(device.capabilities())) {
            Ok(kernel) => kernel,
            Err(error) => {
                println!("{:30} skipped: {error}", test.name);
                continue;
            }
        };
        let budget = RunBudget::time(Duration::from_secs_f64(seconds));
        let settings = RunSettings::new(stress.clone(), budget, 1);
        let before = processor_seconds();
        let seen = runner::run(&device, &kernel, &test, &settings, &mut |_| ControlFlow::Continue(()))?;
        let all = seen.accounted_instances();
        // Processor time if available, so that other work on the machine does not count.
        let seconds = match (before, processor_seconds()) {
            (Some(before), Some(after)) => after - before,
            _ => seen.seconds,
        };
        println!("{:30} {:>8.3} M instances/s", test.name, all as f64 / seconds / 1e6);
        for (outcome, count) in &seen.histogram.counts {
            let values: Vec<String> = outcome.0.iter().map(|value| value.0.to_string()).collect();
            println!("    {:20} {:>12} {:.6}", values.join(" "), count, *count as f64 / all as f64);
        }
        for (raw, count) in &seen.unexpected {
            println!("    unexpected {raw:?} {count}");
        }
    }
    Ok(())
}

/// Returns the processor time of this thread in seconds.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}
