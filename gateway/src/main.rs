use std::process::ExitCode;

use weir::StartError;
use weir::cli::{self, Command};

fn main() -> ExitCode {
    match begin(cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weir: {error}");
            error.exit_code()
        }
    }
}

fn begin(command: Command) -> Result<(), StartError> {
    match command {
        Command::Config { reference, secrets, settings } => {
            cli::print_config(reference, secrets, settings)?;
        }
        Command::Run { settings } => {
            weir::server::run(settings.layers().load()?.config)?;
        }
        Command::Publish(args) => weir::publish::run(&args)?,
    }
    Ok(())
}
