//! Trains a small classifier on all ranks. The gradients of one layer are summed over the ranks while others are
//! computed. `tasuki_examples::sgd` describes how it works.

use clap::{Parser, ValueEnum, value_parser};
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::time::Duration;
use tasuki::prelude::*;
use tasuki_examples::heat::check_writable;
use tasuki_examples::sgd::{Recipe, ReductionMethod, Task, Training, curve, serial, train};
use tasuki_examples::{progress_bar, ranks};

/// The template of the progress bar.
const BAR: &str = "{wide_bar} {msg}, {pos} of {len} steps, {elapsed}";

/// Train a perceptron of two layers on generated samples, on all ranks.
#[derive(Parser)]
#[command(name = "sgd", after_help = "Example: tasuki run -n 4 sgd --hidden 256 --by both")]
struct Options {
    /// Steps
    #[arg(long, default_value_t = 300, value_parser = value_parser!(u32).range(1..=1_000_000))]
    steps: u32,
    /// Samples of a step on all ranks together
    #[arg(long, default_value_t = 512, value_parser = value_parser!(u32).range(1..=1_000_000))]
    batch: u32,
    /// Coordinates of a sample
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u32).range(1..=4096))]
    inputs: u32,
    /// Units of the hidden layer
    #[arg(long, default_value_t = 128, value_parser = value_parser!(u32).range(1..=4096))]
    hidden: u32,
    /// Classes of samples
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u32).range(2..=1000))]
    classes: u32,
    /// Learning rate: the factor of the mean gradient in a step
    #[arg(long, default_value_t = 0.2, allow_negative_numbers = true, value_parser = rate)]
    rate: f64,
    /// Seed of the samples
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How gradients are summed over the ranks
    #[arg(long, value_enum, default_value = "both")]
    by: By,
    /// Where rank 0 writes the picture of the loss
    #[arg(long, default_value = "sgd.svg")]
    output: PathBuf,
    /// Do not compare with a serial training
    #[arg(long)]
    no_check: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Blocking,
    Persistent,
    Both,
}

impl By {
    fn methods(self) -> &'static [ReductionMethod] {
        match self {
            By::Blocking => &[ReductionMethod::Blocking],
            By::Persistent => &[ReductionMethod::Persistent],
            By::Both => &[ReductionMethod::Blocking, ReductionMethod::Persistent],
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "not a number".to_string())?;
    if rate > 0.0 && rate <= 1000.0 {
        Ok(rate)
    } else {
        Err("the rate must be above 0 and at most 1000".into())
    }
}

impl Options {
    fn recipe(&self) -> Recipe {
        let task = Task { inputs: self.inputs as usize, classes: self.classes as usize, seed: self.seed };
        let [hidden, batch, steps] = [self.hidden, self.batch, self.steps].map(|count| count as usize);
        Recipe { task, hidden, batch, steps, rate: self.rate }
    }
}

fn app(job: &Job, options: &Options) -> tasuki::Result<()> {
    let recipe = options.recipe();
    let is_first = job.rank() == 0;
    if is_first {
        check_writable(&options.output).map_err(|error| unwritable(options, error))?;
    }
    let bar = progress_bar::on_first_rank(job, BAR);
    let mut trainings = Vec::new();
    for &method in options.by.methods() {
        bar.set_message(label(method));
        bar.set_length(recipe.steps as u64);
        job.barrier()?; // so that no rank's time includes the preparation of another rank
        trainings.push((method, train(method, job, &recipe, |done| bar.set_position(done as u64))?));
    }
    if is_first {
        report(job, &trainings, options, &bar)?;
    }
    bar.finish_and_clear();
    Ok(())
}

/// Checks, draws and prints the trainings on rank 0.
fn report(
    job: &Job,
    trainings: &[(ReductionMethod, Training)],
    options: &Options,
    bar: &ProgressBar,
) -> tasuki::Result<()> {
    let recipe = options.recipe();
    let diverged = trainings.iter().find(|(_, training)| training.losses.len() < recipe.steps);
    if let Some((_, training)) = diverged {
        let (step, rate) = (training.losses.len() + 1, recipe.rate);
        return Err(format!("the weights diverge in step {step}: choose a --rate below {rate}").into());
    }
    if !options.no_check {
        bar.set_message("serial run");
        let (losses, weights) = serial(&recipe, |done| bar.set_position(done as u64));
        for (method, training) in trainings {
            compare(training, &losses, &weights).map_err(|text| format!("{}: {text}", label(*method)))?;
        }
    }
    bar.finish_and_clear();
    let losses = trainings.last().map_or(&[][..], |(_, training)| &training.losses);
    let svg = curve(losses, &recipe, &ranks(job.size()))?;
    std::fs::write(&options.output, svg).map_err(|error| unwritable(options, error))?;
    println!("{}", table(trainings, &recipe));
    let checked = if options.no_check { "not compared with" } else { "bit for bit as" };
    let (ranks, picture) = (ranks(job.size()), options.output.display());
    println!("{} steps on {ranks}, losses and weights {checked} the serial run; see {picture}", recipe.steps);
    Ok(())
}

/// Checks that losses and weights equal those of the serial run in every bit.
fn compare(training: &Training, losses: &[f64], weights: &[Vec<f32>; 2]) -> Result<(), String> {
    let pairs = training.losses.iter().zip(losses);
    if let Some(step) = pairs.clone().position(|(ours, serial)| ours.to_bits() != serial.to_bits()) {
        let (ours, serial) = (training.losses[step], losses[step]);
        return Err(format!("the loss of step {} is {ours}, that of the serial run {serial}", step + 1));
    }
    let ours = [&training.network.first, &training.network.last].map(|layer| layer.weights());
    match ours.iter().zip(weights).position(|(ours, serial)| *ours != serial) {
        Some(layer) => Err(format!("weights of layer {} differ from those of the serial run", layer + 1)),
        None => Ok(()),
    }
}

fn table(trainings: &[(ReductionMethod, Training)], recipe: &Recipe) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    table.set_header(["gradients by", "us a step, median", "all steps", "loss, first", "last", "accuracy"]);
    for (method, training) in trainings {
        let mut times = training.times.clone();
        times.sort();
        let median = times[times.len() / 2].as_secs_f64() * 1e6;
        let all = times.iter().sum::<Duration>().as_secs_f64();
        let loss = |loss: Option<&f64>| loss.map_or_else(String::new, |loss| format!("{loss:.4}"));
        table.add_row([
            label(*method).to_string(),
            format!("{median:.1}"),
            format!("{all:.3} s"),
            loss(training.losses.first()),
            loss(training.losses.last()),
            format!("{:.1} %", 100.0 * training.accuracy(&recipe.task)),
        ]);
    }
    for column in 1..6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn label(method: ReductionMethod) -> &'static str {
    match method {
        ReductionMethod::Blocking => "blocking calls",
        ReductionMethod::Persistent => "persistent plans",
    }
}

fn unwritable(options: &Options, error: std::io::Error) -> String {
    format!("cannot write {}: {error}", options.output.display())
}

fn main() -> std::process::ExitCode {
    let options = Options::parse();
    tasuki::main(|job| app(job, &options))
}
