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
        Command::Config { reference, settings } => cli::print_config(reference, settings)?,
        Command::Run { settings } => {
            settings.layers().load()?;
            return Err(StartError::System {
                action: "carry media",
                error: std::io::ErrorKind::Unsupported.into(),
            });
        }
        Command::Publish(_) => {
            return Err(StartError::System {
                action: "publish",
                error: std::io::ErrorKind::Unsupported.into(),
            });
        }
    }
    Ok(())
}
