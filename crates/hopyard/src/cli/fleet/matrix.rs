//! `hopyard fleet matrix`: kernels × paths × loads, a cell on each node.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use hopyard_fleet::{
    FOR_CELLS, Matrix, carry_out, matrix_text, over_nodes, read_endpoints, read_matrix,
};

use super::super::{Done, Failure, pretty, print};
use crate::signals;

#[derive(Debug, Args)]
pub(super) struct MatrixArgs {
    #[command(subcommand)]
    command: MatrixCommand,
}

#[derive(Debug, Subcommand)]
enum MatrixCommand {
    /// Print the cells, and the commands that hand them to Slurm; nothing is measured
    Plan {
        /// The matrix
        matrix: PathBuf,
        /// Directory for results
        #[arg(short, long, value_name = "DIR", default_value = "matrix")]
        output: PathBuf,
        /// Print the cells as JSON
        #[arg(long)]
        json: bool,
    },
    /// Measure one cell on this machine, as a task of a job array
    Cell {
        /// The matrix
        matrix: PathBuf,
        /// Number of the cell (default: SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX, as job arrays and Indexed Jobs set them)
        #[arg(long, value_name = "N")]
        number: Option<usize>,
        /// Directory for results
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
    },
    /// Measure all cells that are missing or failed on the nodes of a list, one at a time on each
    Run {
        /// The matrix
        matrix: PathBuf,
        /// File that names the nodes, as for `hopyard fleet run`; hopyard has to be in PATH there
        endpoints: PathBuf,
        /// Directory for results
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
    },
    /// Print what has been measured
    Show {
        /// The matrix
        matrix: PathBuf,
        /// Its directory
        directory: PathBuf,
        /// Print `hopyard/matrix/1` as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn matrix(args: MatrixArgs) -> Done {
    match args.command {
        MatrixCommand::Plan {
            matrix,
            output,
            json,
        } => {
            let read = Matrix::read(&matrix)?;
            if json {
                return print(&pretty(&read.cells())?);
            }
            let cells = read.cells().into_iter().map(|cell| {
                let kind = cell
                    .kind
                    .map_or_else(String::new, |kind| format!("{kind} · "));
                format!(
                    "{:5}  {kind}{} · {} · {}\n",
                    cell.number, cell.kernel, cell.path, cell.load
                )
            });
            let text: String = cells.collect();
            print(&format!(
                "{text}\n{}\n",
                read.batches(&matrix, &output).join("\n")
            ))
        }
        MatrixCommand::Cell {
            matrix,
            number,
            output,
        } => {
            let read = Matrix::read(&matrix)?;
            let number = number.map_or_else(number_of_task, Ok)?;
            signals::listen().map_err(|e| Failure::internal(&e))?;
            let program = super::own_program()?;
            let is_measured = carry_out(&read, number, &output, &program, &signals::interrupted)?;
            done(is_measured)
        }
        MatrixCommand::Run {
            matrix,
            endpoints,
            output,
        } => {
            let (read, nodes) = (
                Matrix::read(&matrix)?,
                read_endpoints(&endpoints, FOR_CELLS)?,
            );
            signals::listen().map_err(|e| Failure::internal(&e))?;
            for node in over_nodes(&read, &nodes, &output, &signals::interrupted)? {
                crate::note(format_args!(
                    "{node} does not answer: its cells were left to other nodes of its kind"
                ));
            }
            let document = read_matrix(&read, &output)?;
            print(&matrix_text(&document))?;
            done(document.is_whole())
        }
        MatrixCommand::Show {
            matrix,
            directory,
            json,
        } => {
            let document = read_matrix(&Matrix::read(&matrix)?, &directory)?;
            if json {
                print(&pretty(&document)?)?;
            } else {
                print(&matrix_text(&document))?;
            }
            done(document.is_whole())
        }
    }
}

fn done(is_whole: bool) -> Done {
    if signals::interrupted() {
        return Ok(ExitCode::from(signals::INTERRUPTED));
    }
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// What the engine that placed us says.
fn number_of_task() -> Result<usize, Failure> {
    let names = ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"];
    let found = names
        .iter()
        .find_map(|name| Some((name, std::env::var(name).ok()?)));
    let Some((name, text)) = found else {
        return Err(Failure::request(format!(
            "which cell? Neither {} is set: give --number",
            names.join(" nor ")
        )));
    };
    text.parse().map_err(|_| {
        Failure::request(format!(
            "{name} is `{}`, which is no number",
            crate::plain::line(&text)
        ))
    })
}
