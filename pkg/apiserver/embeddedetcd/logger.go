package embeddedetcd

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger is etcd's log: warnings and worse, on standard error.
type logger struct {
	zap   *zap.Logger
	level zap.AtomicLevel
}

func newLogger() (*logger, error) {
	level := zap.NewAtomicLevelAt(zapcore.WarnLevel)

	config := zap.NewProductionConfig()
	config.Level = level
	config.DisableStacktrace = true
	config.EncoderConfig.EncodeTime = zapcore.RFC3339TimeEncoder

	made, err := config.Build()
	if err != nil {
		return nil, fmt.Errorf("make the log of etcd: %w", err)
	}

	return &logger{zap: made.Named("etcd"), level: level}, nil
}

// silence keeps quiet about what follows from a stop that was asked for: etcd reports each listener
// that closes as an error.
func (l *logger) silence() { l.level.SetLevel(zapcore.PanicLevel) }
