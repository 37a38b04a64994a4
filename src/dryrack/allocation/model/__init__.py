"""What allocation speaks of: releases, identities, reasons and errors."""
