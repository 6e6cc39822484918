/* Processes of the DSP. Sources include this file and use nothing of it that is known here. */
#pragma once
